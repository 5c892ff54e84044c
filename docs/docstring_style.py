"""Griffe extension for this project's docstrings: numpydoc without types.

Three things that griffe cannot know are told to it here, so that nothing is written twice:

* a field's shape and meaning stand in a comment behind it, as in `times: IntArray  # [M]`; they
  become a table of fields;
* parameters described together, as in `replications, seed`, have types and defaults of their own;
* a `Returns` section is plain text, and its type is the function's annotation.
"""

from __future__ import annotations

import io
import re
import tokenize
from typing import Any

import griffe

FOR_TOOLS = ("noqa", "type:", "fmt:")
MARKDOWN = re.compile(r"([\\`*_\[\]<>|])")


class DocstringStyle(griffe.Extension):
    """Parse docstrings as this project means them."""

    def on_class_members(self, *, cls: griffe.Class, **kwargs: Any) -> None:
        """Add a section with the fields that have comments and are not parameters already."""
        if cls.docstring is None:
            return
        # a dataclass has no constructor yet, so that griffe would not know its parameters
        sections = cls.docstring.parse("numpy", warnings=False)
        told = _told_parameters(sections)
        constructor = cls.members.get("__init__")
        for parameter in told:
            if isinstance(constructor, griffe.Function):
                _take_type(parameter, constructor)
            else:
                field = cls.attributes[parameter.name]
                parameter.annotation, parameter.value = field.annotation, field.value
        names = {parameter.name for parameter in told}
        fields = [
            griffe.DocstringAttribute(
                name=attribute.name,
                description=_comment(cls, attribute.lineno),
                annotation=attribute.annotation,
            )
            for attribute in cls.attributes.values()
            if attribute.annotation is not None
            and attribute.docstring is None  # properties have one
            and attribute.name not in names
            and not attribute.name.startswith("_")
        ]
        if any(field.description for field in fields):  # else the docstring tells them in words
            sections.append(griffe.DocstringSectionAttributes(fields, title="Fields:"))
        cls.docstring.__dict__["parsed"] = sections

    def on_function_instance(self, *, func: griffe.Function, **kwargs: Any) -> None:
        """Give parameters and what is returned their types."""
        if func.docstring is None:
            return
        text, _, returned = func.docstring.value.partition("\nReturns\n")
        func.docstring.value = text.rstrip()
        sections = func.docstring.parse("numpy")
        for parameter in _told_parameters(sections):
            _take_type(parameter, func)
        if returned:
            described = griffe.DocstringReturn(
                name="",
                description=returned.partition("\n")[2],  # the first line is hyphens
                annotation=func.returns,
            )
            sections.append(griffe.DocstringSectionReturns([described]))
        func.docstring.__dict__["parsed"] = sections


def _told_parameters(sections: list[Any]) -> list[griffe.DocstringParameter]:
    return [
        parameter
        for section in sections
        if isinstance(section, griffe.DocstringSectionParameters)
        for parameter in section.value
    ]


def _take_type(parameter: griffe.DocstringParameter, function: griffe.Function) -> None:
    declared = function.parameters[parameter.name]  # a KeyError ends the build, and should
    parameter.annotation, parameter.value = declared.annotation, declared.default


def _comment(cls: griffe.Class, lineno: int | None) -> str:
    """Text of the comment behind a field, escaped for Markdown."""
    if lineno is None:
        return ""
    line = cls.lines_collection[cls.filepath][lineno - 1].strip()
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(line).readline))
    except tokenize.TokenError:  # the field goes on in the next line
        return ""
    comments = [token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT]
    if not comments or comments[0].startswith(FOR_TOOLS):
        return ""
    return MARKDOWN.sub(r"\\\1", comments[0])
