"""Words that lines around an article are made of, in the languages that most pages are written in.

They are hints for the forest and no more: a sentence about newsletters is still a sentence.
"""

from __future__ import annotations

from nexus.extract.elements import words

#: How much of a text is looked at. What a line is for shows at its beginning.
LENGTH = 240
_TRIMMED = ".,:;!?…|()[]\"'“”„»«›‹→*-–—"

#: One count each.
CUES = (
    # Offers: newsletters, subscriptions, accounts, apps.
    words(
        "newsletter newsletters subscribe subscribing subscription subscriber subscribers sign signup inbox "
        "register account app email e-mail donate membership download abonnieren abonniere abonnenten abo "
        "registrieren anmelden anmeldung kostenlos jetzt spenden inscrivez-vous abonnez-vous abonnement s'abonner "
        "suscríbete suscribirse boletín assine iscriviti inschrijven nieuwsbrief prenumerera подписывайтесь "
        "подписка 订阅 登录 注册 下载 购読 登録"
    ),
    # Law and ownership.
    words(
        "© copyright copyrighted rights reserved privacy policy terms cookies cookie disclaimer trademark "
        "trademarks affiliate commission sponsored advertisement advertising advertise anzeige werbung "
        "datenschutz impressum agb gewähr vorbehalten haftung urheberrecht droits réservés mentions légales "
        "derechos reservados publicidad direitos publicidade privacybeleid 版权 版权所有 免责声明 声明 广告 著作権 広告"
    ),
    # Sharing and following.
    words(
        "share shares sharing tweet facebook twitter instagram whatsapp pinterest linkedin youtube telegram "
        "tiktok follow like likes print bookmark copy link teilen folgen folgt drucken merken partager "
        "suivez-nous suivre imprimer compartir síguenos imprimir compartilhar compartilhe siga condividi seguici "
        "delen volg поделиться 分享 微信 微博 收藏 点赞 转发 シェア"
    ),
    # Ways to other pages.
    words(
        "read more related click here see also view next previous latest popular recommended recommend trending "
        "watch continue find learn mehr weiterlesen lesen auch hier klicken zum zur weitere themen artikel lire "
        "aussi suite plus voir leer más también ver leia mais também veja leggi anche altro lees ook meer читайте "
        "также 相关 更多 阅读 详细 推荐 上一篇 下一篇 关連記事 続き"
    ),
    # Readers' voices.
    words(
        "comment comments commenting reply replies login post posts posted rating ratings review reviews "
        "kommentar kommentare kommentieren antworten bewertung bewertungen beitrag commentaire commentaires "
        "répondre avis comentario comentarios responder comentários comentário commenti reacties комментарии "
        "комментарий 评论 留言 回复 发表 コメント"
    ),
    # Who, when, and whose picture.
    words(
        "by author editor editors reporter published updated written photo photos photograph image images picture "
        "credit source getty reuters afp dpa ap contact tags tagged category filed minutes min von autor autorin "
        "redaktion foto fotos bild quelle stand uhr veröffentlicht aktualisiert kontakt schlagwörter kategorie "
        "par publié crédit por publicado fuente fonte di автор фото 来源 作者 编辑 责任编辑 记者 摄影 图片 图 時間 时间"
    ),
)


def count_cues(text: str) -> list[float]:
    """Return how many words of each kind a text begins with."""
    found = {word.strip(_TRIMMED) for word in text[:LENGTH].lower().split()}
    return [float(len(cue & found)) for cue in CUES]
