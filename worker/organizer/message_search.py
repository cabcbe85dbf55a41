"""The messages of the code, found in the syntax tree where they are raised, because there is no registry of them.

A value that is only known when the message is written becomes a placeholder, see :mod:`worker.organizer.message_values`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

from scoring.inputs.faults import CATALOGUE
from worker.organizer.message_values import DOTS, NUMBER, name_of, placeholder, placeholder_of

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("scoring", "leaderboard", "worker")
FILE, ORGANIZER, RETRIED, ALERT, DOCTOR, LOG = "file", "organizer", "retried", "alert", "doctor", "log"
FAMILIES = {
    "ParticipantError": FILE,
    "OrganizerError": ORGANIZER,
    "InfrastructureError": RETRIED,
    "Cancelled": RETRIED,
}
FINDINGS = {"fail", "warn", "say"}
CODE = re.compile(r"[a-z_]+\.[a-z_]+")
PLACE_HOLDER = re.compile(r"\{0\.(\w+)\}")  # in a text that str.format completes
MOST = 3  # texts of one value; with more, a placeholder is shown


@dataclass(frozen=True, kw_only=True, order=True)
class Message:
    """One message: its section of the page, its code, its sentence and its cure."""

    section: str
    code: str
    sentence: str
    cure: str = ""


@cache
def messages() -> tuple[Message, ...]:
    """Return all messages of the code, sorted; the search parses every module and takes seconds."""
    modules = [
        Module(path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8")))
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
    ]
    classes = {
        node.name: node
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
    }
    constants = {name: value for module in modules for name, value in module.texts.items()}
    found = {
        message for module in modules for message in Finder(module, modules, classes, constants).messages()
    }
    found |= {
        Message(section=FILE, code=code, sentence=_several(kind.one, kind.many) + ".", cure=kind.cure_of(2))
        for code, kind in CATALOGUE.items()
    }
    return tuple(sorted(found))


def _several(one: str, many: str) -> str:
    return many.format(count=placeholder_of(NUMBER)) or one


class Module:
    """One file: its tree, and the meaning of its names."""

    def __init__(self, name: str, tree: ast.Module) -> None:
        self.name = name
        self.tree = tree
        self.parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        self.functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        self.calls: dict[str, list[ast.Call]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                self.calls.setdefault(name_of(node.func), []).append(node)
        values = {
            target.id: node.value.value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        self.texts = {name: value for name, value in values.items() if isinstance(value, str)}
        numbers = {name: f"{value:g}" for name, value in values.items() if isinstance(value, int | float)}
        self.constants = self.texts | numbers

    def around(self, node: ast.AST, kind: type[ast.AST]) -> ast.AST | None:
        """Return the nearest node of a kind that encloses another one."""
        parent = self.parents.get(node)
        while parent is not None and not isinstance(parent, kind):
            parent = self.parents.get(parent)
        return parent


Bound = Mapping[str, ast.expr]
UNKNOWN = ast.Tuple(elts=[], ctx=ast.Load())
"""A value that is not looked up."""


class Finder:
    """Finds the messages of one module."""

    def __init__(
        self,
        module: Module,
        modules: Sequence[Module],
        classes: Mapping[str, ast.ClassDef],
        constants: Mapping[str, str],
    ) -> None:
        self.module = module
        self.modules = modules
        self.classes = classes
        self.constants = constants

    def messages(self) -> Iterator[Message]:
        """Yield every message of the module."""
        yield from self._tables()
        for name, call in ((name, call) for name, calls in self.module.calls.items() for call in calls):
            keywords = {word.arg: word.value for word in call.keywords if word.arg}
            if "event_key" in keywords and call.args:
                yield from self._written(LOG, call, keywords["event_key"], call.args[0], None)
            elif name == "raise_alert" and len(call.args) == 3:
                yield from self._written(ALERT, call, call.args[1], call.args[2], None)
            elif name == "Difference" and {"sentence", "cure"} <= keywords.keys():
                line = ast.JoinedStr(values=[keywords["sentence"], ast.Constant(" "), keywords["cure"]])
                yield from self._written(LOG, call, ast.Constant("phase.differs"), line, None)
            elif name in FINDINGS and len(call.args) == 2:
                yield from self._found(call)
            elif name == "Flag" and len(call.args) == 6:
                yield from self._written(DOCTOR, call, call.args[0], call.args[4], call.args[5])
            elif (family := self._family(call)) is not None and call.args:
                code = keywords.get("code") or self._usual_code(name)
                if code is not None:
                    yield from self._written(family, call, code, call.args[0], keywords.get("cure"))

    def _tables(self) -> Iterator[Message]:
        """Yield the rows of tables: a code, its sentence, and perhaps its cure, at the end of a tuple."""
        for row in ast.walk(self.module.tree):
            if isinstance(row, ast.Tuple):
                texts = [self._texts(item, row, {})[0] for item in row.elts]
                for place, code in enumerate(texts[:-1]):
                    if CODE.fullmatch(code) and " " in texts[place + 1]:
                        cure = texts[place + 2] if len(texts) > place + 2 else ""
                        section = ORGANIZER if cure else ALERT
                        yield Message(section=section, code=code, sentence=texts[place + 1], cure=cure)

    def _written(
        self, section: str, call: ast.Call, code: ast.expr, sentence: ast.expr, cure: ast.expr | None
    ) -> Iterator[Message]:
        """Yield the messages of a call, one for each call of the enclosing function with other texts."""
        for bound in self._bindings(call):
            codes = self._texts(code, call, bound)
            sentences = self._texts(sentence, call, bound)
            cures = self._texts(cure, call, bound) if cure is not None else [""]
            together = [codes, sentences, cures]
            rows = list(product(codes, sentences, cures))
            if len(codes) > 1 and all(len(texts) in (1, len(codes)) for texts in together):
                # One condition chooses code, sentence and cure together.
                rows = [
                    (texts[0], texts[1], texts[2])
                    for texts in zip(*(_filled(each, len(codes)) for each in together), strict=True)
                ]
            for one, words, remedy in rows:
                if one and DOTS not in one and words.strip(f"{DOTS}. "):
                    yield Message(
                        section=section,
                        code=one,
                        sentence=words.replace("….", "…"),
                        cure=remedy.replace("….", "…") if remedy != DOTS else "",
                    )

    def _found(self, call: ast.Call) -> Iterator[Message]:
        """Yield the findings of a doctor's check; the code is the id of the check that makes them, directly or through a function."""
        around = self.module.around(call, ast.FunctionDef)
        if not isinstance(around, ast.FunctionDef):
            return
        users = (
            [around]
            if _check(around) is not None
            else [
                function
                for function in self.module.functions.values()
                if any(isinstance(node, ast.Name) and node.id == around.name for node in ast.walk(function))
            ]
        )
        for user in users:
            check = _check(user)
            if check is not None:
                yield from self._written(DOCTOR, call, check, call.args[0], call.args[1])

    def _bindings(self, call: ast.Call) -> list[Bound]:
        """Return the values of the enclosing function's parameters, for each call of that function by name."""
        around = self.module.around(call, ast.FunctionDef)
        if not isinstance(around, ast.FunctionDef):
            return [{}]
        names = [argument.arg for argument in around.args.args]
        # The default of a command's option is only one of its values.
        options = {
            argument.arg
            for argument in (*around.args.args, *around.args.kwonlyargs)
            if isinstance(argument.annotation, ast.Subscript)
            and name_of(argument.annotation.value) == "Annotated"
        }
        defaults = dict(zip(reversed(names), reversed(around.args.defaults), strict=False))
        defaults |= {
            argument.arg: value
            for argument, value in zip(around.args.kwonlyargs, around.args.kw_defaults, strict=True)
            if value is not None
        }
        defaults = {name: value for name, value in defaults.items() if name not in options}
        return [
            {
                **defaults,
                **dict(zip(names, node.args, strict=False)),
                **{word.arg: word.value for word in node.keywords if word.arg},
            }
            for node in self._calls_of(around.name)
            if isinstance(node.func, ast.Name)
        ] or [{}]

    def _calls_of(self, name: str) -> list[ast.Call]:
        """Return the calls of a function in this module or, if there are none, in the others; none if both call it."""
        own = self.module.calls.get(name, [])
        if name.startswith("_"):
            return own
        if own:
            return [] if any(self._imports(module, name) for module in self.modules) else own
        return [call for module in self.modules for call in module.calls.get(name, ())]

    def _imports(self, module: Module, name: str) -> bool:
        """Return whether a module calls a function that it imports from this one."""
        here = self.module.name.removesuffix(".py").replace("/", ".")
        return name in module.calls and any(
            isinstance(node, ast.ImportFrom)
            and node.module == here
            and name in {one.name for one in node.names}
            for node in module.tree.body
        )

    def _texts(self, node: ast.expr, place: ast.AST, bound: Bound) -> list[str]:
        """Return the texts that an expression may have, with dots for unknown parts."""
        match node:
            case ast.Constant(value=str(text)):
                return [PLACE_HOLDER.sub(lambda found: placeholder_of(found[1]), text)]
            case ast.JoinedStr(values=values):
                return self._joined(values, place, bound)
            case ast.FormattedValue(value=value):
                known = self._texts(value, place, bound)
                return (
                    known
                    if len(known) <= MOST and not any(DOTS in text for text in known)
                    else [placeholder(value)]
                )
            case ast.IfExp(body=body, orelse=other):
                return [*self._texts(body, place, bound), *self._texts(other, place, bound)]
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._joined([left, right], place, bound)
            case ast.Attribute(attr=name) if name.isupper():
                return [self.constants.get(name, DOTS)]
            case ast.Name(id=name):
                return self._named(name, place, bound)
            case _:
                return [DOTS]

    def _joined(self, parts: list[ast.expr], place: ast.AST, bound: Bound) -> list[str]:
        return ["".join(texts) for texts in product(*(self._texts(part, place, bound) for part in parts))]

    def _named(self, name: str, place: ast.AST, bound: Bound) -> list[str]:
        """Return the texts of a name, which may be a parameter, a variable (one level only) or a constant."""
        if name in bound:
            return self._texts(bound[name], bound[name], {})
        around = self.module.around(place, ast.FunctionDef)
        assigned = [
            text
            for node in (ast.walk(around) if around is not None else ())
            if isinstance(node, ast.Assign | ast.AnnAssign)
            and node.value is not None
            and name
            in {
                name_of(target)
                for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            }
            for text in self._texts(node.value, self.module.tree, dict.fromkeys((name, *bound), UNKNOWN))
        ]
        known = self.module.constants.get(name) or (self.constants.get(name) if name.isupper() else None)
        return assigned or [known or DOTS]

    def _family(self, call: ast.Call) -> str | None:
        """Return the section of the error that a call creates, if it creates one."""
        if isinstance(call.func, ast.Attribute) and call.func.attr == "__init__":
            around = self.module.around(call, ast.ClassDef)
            name = around.name if isinstance(around, ast.ClassDef) else ""
        else:
            name = name_of(call.func)
        seen = set()
        while name not in FAMILIES:
            if name in seen or name not in self.classes or not self.classes[name].bases:
                return None
            seen.add(name)
            name = name_of(self.classes[name].bases[0])
        shown_to_participants = FAMILIES[name] != FILE or not self.module.name.startswith(
            "scoring/neuco_bench"
        )
        return FAMILIES[name] if shown_to_participants else ORGANIZER

    def _usual_code(self, name: str) -> ast.expr | None:
        body = self.classes[name].body if name in self.classes else []
        return next(
            (
                node.value
                for node in body
                if isinstance(node, ast.Assign) and name_of(node.targets[0]) == "usual_code"
            ),
            None,
        )


def _filled(texts: list[str], number: int) -> list[str]:
    return texts * (number // len(texts))


def _check(function: ast.FunctionDef) -> ast.expr | None:
    """Return the id of the check that a function implements, by its decorator."""
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "CHECKS.add":
            return decorator.args[0]
    return None
