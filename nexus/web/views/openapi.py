"""The OpenAPI document as a page shows it: every call and field with its type, meaning and an example."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

Schema = dict[str, Any]
_REF = "#/components/schemas/"
#: Examples for schemas that give none.
_BY_FORMAT = {"uuid": "6f1c9a52-7d0e-4d8e-9d7c-0a7e3a1b2c3d", "date-time": "2026-01-01T12:00:00+00:00"}
_BY_TYPE = {"integer": 1, "number": 1.0, "boolean": True, "null": None, "string": "…"}


@dataclass(frozen=True)
class ShownField:
    name: str
    type: str
    required: bool
    description: str
    example: str


@dataclass(frozen=True)
class ShownAnswer:
    status: str
    meaning: str
    example: str


@dataclass(frozen=True)
class ShownCall:
    anchor: str
    method: str
    path: str
    summary: str
    description: str
    public: bool
    parameters: list[ShownField]
    body: list[ShownField]
    body_example: str
    answers: list[ShownAnswer]


@dataclass(frozen=True)
class Reference:
    title: str
    version: str
    description: str
    groups: dict[str, list[ShownCall]]


def read_openapi(document: dict[str, Any]) -> Reference:
    """Divide a document into its calls, by tag."""
    reader = _Reader(document.get("components", {}).get("schemas", {}))
    groups: dict[str, list[ShownCall]] = {}
    for path, calls in document["paths"].items():
        for method, call in calls.items():
            tag = (call.get("tags") or ["other"])[0]
            groups.setdefault(tag, []).append(reader.call(path, method, call))
    info = document["info"]
    return Reference(info["title"], info["version"], info.get("description", "").strip(), groups)


@dataclass(frozen=True)
class _Reader:
    schemas: dict[str, Schema]

    def call(self, path: str, method: str, call: Schema) -> ShownCall:
        body = self._content(call.get("requestBody", {}))
        return ShownCall(
            anchor=re.sub(r"[^a-z0-9]+", "-", f"{method} {path}".lower()).strip("-"),
            method=method.upper(),
            path=path,
            summary=call.get("summary", ""),
            description=call.get("description", ""),
            public=call.get("security") == [],
            parameters=[self._parameter(given) for given in call.get("parameters", ())],
            body=self._fields(body) if body else [],
            body_example=_pretty(self.example(body)) if body else "",
            answers=[self._answer(status, given) for status, given in call.get("responses", {}).items()],
        )

    def example(self, schema: Schema) -> Any:
        """Return what a value of this schema may look like."""
        schema = self._resolve(schema)
        for fixed in ("const", "default"):
            if fixed in schema:
                return schema[fixed]
        given = schema.get("examples") or schema.get("enum")
        return given[0] if given else self._made_up(schema)

    def _made_up(self, schema: Schema) -> Any:
        if "anyOf" in schema:
            return self.example(schema["anyOf"][0])
        if "properties" in schema:
            return {name: self.example(field) for name, field in schema["properties"].items()}
        if schema.get("type") == "array":
            return [self.example(schema.get("items", {}))]
        return _BY_FORMAT.get(schema.get("format", ""), _BY_TYPE.get(schema.get("type", ""), "…"))

    def _parameter(self, given: Schema) -> ShownField:
        schema = given.get("schema", {})
        examples = schema.get("examples") or [item for item in [schema.get("default")] if item is not None]
        return ShownField(
            given["name"],
            f"{given['in']}, {self._type(schema)}",
            bool(given.get("required")),
            given.get("description", "") or schema.get("description", ""),
            str(examples[0]) if examples else "",
        )

    def _answer(self, status: str, given: Schema) -> ShownAnswer:
        schema = self._content(given)
        example = _pretty(self.example(schema)) if schema and "properties" in self._resolve(schema) else ""
        return ShownAnswer(status, given.get("description", ""), example)

    def _fields(self, schema: Schema) -> list[ShownField]:
        schema = self._resolve(schema)
        needed = schema.get("required", ())
        return [
            ShownField(
                name,
                self._type(field),
                name in needed,
                field.get("description", ""),
                json.dumps(self.example(field), ensure_ascii=False),
            )
            for name, field in schema.get("properties", {}).items()
        ]

    def _type(self, schema: Schema) -> str:
        schema = self._resolve(schema)
        if "enum" in schema:
            return " or ".join(map(str, schema["enum"]))
        if "anyOf" in schema:
            return " or ".join(self._type(choice) for choice in schema["anyOf"])
        if schema.get("type") == "array":
            return f"list of {self._type(schema.get('items', {}))}"
        return str(schema.get("format") or schema.get("type", "any"))

    def _resolve(self, schema: Schema) -> Schema:
        while "$ref" in schema:
            schema = self.schemas[schema["$ref"].removeprefix(_REF)]
        return schema

    def _content(self, given: Schema) -> Schema:
        """Return the schema of the first content type of a body or an answer."""
        first: Schema = next(iter(given.get("content", {}).values()), {})
        schema: Schema = first.get("schema", {})
        return schema


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
