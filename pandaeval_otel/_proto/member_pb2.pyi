from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Member(_message.Message):
    __slots__ = ("trace_id", "session_id", "left", "session_end", "start_ns", "end_ns", "facts", "answer", "decided", "contents")
    TRACE_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    SESSION_END_FIELD_NUMBER: _ClassVar[int]
    START_NS_FIELD_NUMBER: _ClassVar[int]
    END_NS_FIELD_NUMBER: _ClassVar[int]
    FACTS_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    DECIDED_FIELD_NUMBER: _ClassVar[int]
    CONTENTS_FIELD_NUMBER: _ClassVar[int]
    trace_id: bytes
    session_id: str
    left: bool
    session_end: bool
    start_ns: int
    end_ns: int
    facts: bytes
    answer: bytes
    decided: bool
    contents: _containers.RepeatedCompositeFieldContainer[Content]
    def __init__(self, trace_id: _Optional[bytes] = ..., session_id: _Optional[str] = ..., left: bool = ..., session_end: bool = ..., start_ns: _Optional[int] = ..., end_ns: _Optional[int] = ..., facts: _Optional[bytes] = ..., answer: _Optional[bytes] = ..., decided: bool = ..., contents: _Optional[_Iterable[_Union[Content, _Mapping]]] = ...) -> None: ...

class Content(_message.Message):
    __slots__ = ("request", "logs")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    LOGS_FIELD_NUMBER: _ClassVar[int]
    request: bytes
    logs: bool
    def __init__(self, request: _Optional[bytes] = ..., logs: bool = ...) -> None: ...
