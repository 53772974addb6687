"""What tests are made with: servers, processes, people, documents and faults. None of it is a test."""
