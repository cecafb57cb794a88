"""The system prompt in sections: order, templates, variables, and the refusal of wrong templates."""

import asyncio
import hashlib
import subprocess
import sys
import tracemalloc
from typing import Any, cast

import msgspec
import pytest

from everlog.actors.agent.agent_setup import InitialBlock, Settings
from everlog.actors.prompt import presets, prompt_sections
from everlog.events import AgentConfigured, BadInput, Section, event_of
from tests.actors.agent.test_undo import assert_replays, during
from tests.support.agent_world import World

CONFIG = AgentConfigured(model="scripted", window=8192, renderer=1)
FACTS = prompt_sections.TemplateContext(
    "sam", [{"label": "human", "description": "You", "limit": 5, "read_only": False}]
)
SCHEMAS = ('{"name":"send_message","description":"Say it."}', '{"name":"rest"}')


def gives(text: str) -> str:
    """Return the text of one section."""
    return prompt_sections.render_section(CONFIG, Section("base", text), SCHEMAS, FACTS)


def configured(world: World) -> AgentConfigured:
    """Return the newest configuration."""
    return cast("AgentConfigured", next(event_of(r) for r in reversed(world.log()) if r.type == "agent_configured"))


def prompt(*texts: str, **more: Any) -> Settings:
    """Return settings with sections named a, b and so on."""
    return Settings(sections=[Section("abcdef"[number], text) for number, text in enumerate(texts)], **more)


def test_the_presets_have_not_changed() -> None:
    """The digests of the older presets are those of the texts before they were divided into sections."""
    digests = {name: hashlib.sha256(presets.system(name).encode()).hexdigest()[:8] for name in presets.names("system")}
    assert digests == {"chat": "408c7dfa", "docs": "8a2fa16c", "extras": "34827083", "small": "034b6f16"}
    for name in digests:
        parts = presets.sections(name)
        given = prompt_sections.system_prompt(
            msgspec.structs.replace(CONFIG, sections=prompt_sections.check_sections(parts)), SCHEMAS, FACTS
        )
        assert given == presets.system(name)


def test_sections_are_shown_in_their_order_and_hidden_ones_are_kept() -> None:
    """Sections are separated by an empty line; a hidden or empty section adds none."""
    parts = [
        Section("b", "Two\n"),
        Section("x", "no", visible=False),
        Section("e", "{# nothing #}"),
        Section("a", "One"),
    ]
    assert (
        prompt_sections.system_prompt(msgspec.structs.replace(CONFIG, sections=parts), SCHEMAS, FACTS) == "Two\n\nOne"
    )


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("{{ agent }} on {{ model }} with {{ window - 92 }} in {{ zone }}", "sam on scripted with 8100 in UTC"),
        ("{{ functions|join(', ', 'name') }}", "send_message, rest"),
        ("{% for b in blocks %}{{ loop.index }} {{ b.label|upper }}{% if not loop.last %},{% endif %}{% endfor %}",
         "1 HUMAN"),
        ("{% set n = functions|length %}{{ n * 2 if n > 1 else 'one' }}", "4"),
        ("{% for i in range(9) if i is even %}{{ i }}{% else %}none{% endfor %}", "02468"),
        ("{% for i in range(2) %}{% for j in range(2) %}{{ i }}{{ j }} {% endfor %}{% endfor %}", "00 01 10 11 "),
        ("{{ missing|default('x') }}{{ missing is defined }}", "xFalse"),
        ("{{ 1 < 2 <= 2 != 3 }} {{ 1 < 2 > 2 }} {{ 'a' in agent }} {{ 'x' not in agent }} {{ 1 is in([1]) }}",
         "True False True True True"),
        ("{% for b in blocks if b.limit >= 5 and b.label is eq 'human' %}{{ b.label }}{% endfor %}", "human"),
        ("{{ [1, 2]|join(', ') }}{{ []|join(', ') }}", "1, 2"),
        ("a\r\n{{ '{{' }}\r\n", "a\n{{"),
        ("{% raw %}{{ a }}{% endraw %}", "{{ a }}"),
        ("No sign: { } % #", "No sign: { } % #"),
    ],
)  # fmt: skip
def test_a_template_shows_its_variables(text: str, given: str) -> None:
    """Facts, filters, tests and loops."""
    assert gives(text) == given


DOUBLING = "{% set x = 'ab' %}" + "{% set x = x + x %}" * 60 + "{{ x }}"
LISTS = "{% set x = ['a'] %}" + "{% set x = [x, x] %}" * 60 + "{{ x }}"
REPLACING = "{% set x = 'aaaa' %}" + "{% set x = x|replace('a', 'aaaa') %}" * 60
JOINING = "{% set a = '" + "\U0001f600" * 20000 + "' %}{{ a|join(a) }}"
WRONG: dict[str, tuple[str, str]] = {
    "a long text": ("{{ 'a' * 1000000000 }}", "line 1: * is for numbers"),
    "a power": ("\n{{ 10 ** 9 }}", "line 2: a template has no pow"),
    "a long range": ("a\n{% for i in range(1000000000) %}x{% endfor %}", "line 2: a range has 1,000 numbers"),
    "loops in loops": ("{% for i in range(9) %}\n" * 3 + "{% endfor %}" * 3, "line 3: loops stand in loops"),
    "many loops in loops": ("{% for i in range(9) %}" * 1500 + "{% endfor %}" * 1500, "nested too deeply"),
    "a text that doubles": (DOUBLING, "more than 20,000 characters"),
    "lists that double": (LISTS, "a list holds constants only"),
    "a replacing that grows": (REPLACING, "more than 20,000 characters"),
    "a long loop of text": ("{% for i in range(999) %}" + "x" * 1000 + "{% endfor %}", "more than 200,000"),
    "a long join": (JOINING, "more than 20,000 characters"),
    "a width": ("{{ 'a'|center(1000000000) }}", "there is no filter 'center'"),
    "a format": ("{{ '%1000000000d' % 1 }}", "% is for numbers"),
    "a method": ("{{ '{:>1000000000}'.format(1) }}", "only range(...) can be called"),
    "a huge number": ("{{ 1" + "0" * 5000 + " }}", "digits"),
    "a recursive macro": ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "only range(...) can be called"),
    "a macro": ("{% macro m() %}{% endmacro %}", "a template has no macro"),
    "a recursive loop": ("{% for i in range(2) recursive %}{% endfor %}", "cannot be recursive"),
    "a file": ("{% include '/etc/passwd' %}", "a template has no include"),
    "an import": ("{% import 'os' as os %}", "a template has no import"),
    "an attribute": ("{{ ''.__class__ }}", "__class__ is not for templates"),
    "an attribute by its name": ("{{ ''['__class__'] }}", "unsafe"),
    "a function that is not called": ("{{ agent.upper }}", "not a function"),
    "a list": ("{{ functions }}", "not a list"),
    "what a block assigns": ("{% set x %}y{% endset %}", "a template has no assignblock"),
    "deep brackets": ("{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}", "nested too deeply"),
    "many parts": ("{{ 1 }}" * 9000, "longer than 5,000 parts"),
    "a name that is not there": ("One\nTwo\n{{ nobody }}", "line 3: 'nobody' is undefined"),
    "a sign that is not closed": ("One\n{{ agent", "line 2: "),
    "half a condition": ("{% if %}", "line 1: Expected an expression"),
    "a division by zero": ("{{ 1 / 0 }}", "line 1: division by zero"),
    "a comparison that cannot be": ("{{ 'a' < 1 }}", "line 1: '<' not supported"),
    "an index that is not there": ("{{ functions[99].name }}", "line 1: list object has no element 99"),
    "an endless number": ("{{ 1e400|int }}", "line 1: "),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_template_is_refused_with_its_section_and_its_line(name: str) -> None:
    """The error names the section, the line and the reason; endless templates are refused quickly."""
    text, why = WRONG[name]
    with pytest.raises(BadInput) as refused:
        gives(text)
    assert "The section 'base'" in str(refused.value) and why in str(refused.value)


@pytest.mark.parametrize("text", [DOUBLING, LISTS, REPLACING, JOINING, WRONG["a long text"][0], WRONG["a width"][0]])
def test_a_template_that_grows_is_refused_before_it_takes_much_memory(text: str) -> None:
    """Templates that would need gigabytes are refused with less than ten megabytes used."""
    tracemalloc.start()
    try:
        with pytest.raises(BadInput):
            gives(text)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10_000_000


def test_a_wrong_template_changes_nothing() -> None:
    """A wrong template creates no agent, and does not change an existing one."""
    world = World()
    world.settings = prompt("{{ nobody }}", model="scripted")
    with pytest.raises(BadInput, match="nobody"):
        asyncio.run(world.tell("Hi"))
    assert world.kinds() == []
    world.settings = prompt("I am {{ agent }}.", model="scripted")
    asyncio.run(world.tell("Hi"))
    log = world.log()
    with pytest.raises(BadInput, match="'b', line 2"):
        during(world, lambda agent: agent.configure(prompt("Fine.", "\n{% for %}")))
    assert world.log() == log and configured(world).text == "I am sam."


def test_an_activation_renders_nothing_and_writes_nothing_where_nothing_changed() -> None:
    """The recorded prompt is used again; it is rendered again only for a change such as another model, and the log
    verifies.
    """
    world = World()
    world.settings = prompt("{{ agent }}, {{ model }}, {{ blocks|join(' ', 'label') }}", model="scripted")
    asyncio.run(world.tell("Hi"))
    assert configured(world).text == "sam, scripted, persona human"
    log = world.log()
    again = world.restarted()
    again.settings = Settings()
    asyncio.run(again.tell())
    assert again.log() == log
    during(again, lambda agent: agent.configure(Settings(steps_max=5)))
    assert configured(again).text == "sam, scripted, persona human"
    during(again, lambda agent: agent.configure(Settings(model="other")))
    assert configured(again).text == "sam, other, persona human"
    assert_replays(again)


def test_a_new_agents_blocks_are_given_to_its_templates() -> None:
    """The blocks of a new agent, with their descriptions, can be used in its templates."""
    world = World()
    world.settings = prompt("{% for b in blocks if b.description %}{{ b.label }}: {{ b.description }}{% endfor %}",
                            model="scripted", blocks=(InitialBlock("notes", "", 9, "What to note", True),))  # fmt: skip
    asyncio.run(world.tell())
    assert configured(world).text == "notes: What to note"


VALUES = ('O "x" {% raw %} %} }}', "ä 😀\n\t\\", "")


@pytest.mark.parametrize("value", VALUES)
def test_a_variable_of_the_users_own_is_written_into_the_template(value: str) -> None:
    """The value of a variable becomes part of the template's text, so that no other file is needed later."""
    (made,) = prompt_sections.with_variables([Section("base", "a\n{{ who }}!")], {"who": value})
    assert gives(made.text) == f"a\n{value}!"


def test_a_new_value_of_a_variable_replaces_the_old_one() -> None:
    """A variable that the template sets at its beginning is replaced; other variables keep their values."""
    (old,) = prompt_sections.with_variables([Section("base", "{{ city }}, {{ who }}")], {"city": 'Os"lo', "who": "Ann"})
    (new,) = prompt_sections.with_variables([old], {"city": "Paris"})
    assert gives(new.text) == "Paris, Ann"
    assert "lo" not in new.text
    with pytest.raises(BadInput, match="it would be lost"):
        prompt_sections.with_variables([Section("base", '{% set city="Oslo" %}Nothing.')], {"city": "Paris"})


@pytest.mark.parametrize("name", ["agent", "1x", "a-b", "nobody"])
def test_an_invalid_or_unused_variable_is_refused(name: str) -> None:
    """A reserved name, an invalid name, and a variable that the template does not use are refused."""
    with pytest.raises(BadInput):
        prompt_sections.with_variables([Section("base", "{{ who }} {{ agent }}")], {name: "x"})


@pytest.mark.parametrize(
    "parts",
    [
        [Section("a", ""), Section("a", "")],
        [Section("1", "")],
        [Section("a b", "")],
        [Section("a", "x" * 200_001)],
        [Section(f"a{number}", "") for number in range(101)],
    ],
)
def test_invalid_sections_are_refused(parts: list[Section]) -> None:
    """Two sections of one name, an invalid name, a text that is too long, and too many sections are refused."""
    with pytest.raises(BadInput):
        prompt_sections.check_sections(parts)


def test_sections_and_text_exclude_and_replace_each_other() -> None:
    """A text replaces sections, sections replace a preset, and an empty list of sections restores the preset."""
    world = World()
    world.settings = prompt("One", model="scripted")
    asyncio.run(world.tell())
    with pytest.raises(BadInput, match="not both"):
        during(world, lambda agent: agent.configure(prompt("One", system="Two")))
    during(world, lambda agent: agent.configure(Settings(system="{{ as it stands }}")))
    assert (configured(world).text, configured(world).sections) == ("{{ as it stands }}", [])
    (custom,) = prompt_sections.of(configured(world))
    assert gives(custom.text) == "{{ as it stands }}"
    during(world, lambda agent: agent.configure(prompt("Three")))
    assert (configured(world).text, configured(world).preset) == ("Three", "")
    during(world, lambda agent: agent.configure(Settings(sections=[])))
    assert (configured(world).text, configured(world).preset) == (presets.system("chat"), "chat")
    assert [section.name for section in prompt_sections.of(configured(world))][:2] == ["base", "control_flow"]


def test_a_host_loads_no_template_library_before_the_first_template() -> None:
    """Importing the host and the command line does not import jinja2, and neither does a section without template
    syntax.
    """
    probe = (
        "import sys, everlog.interfaces.cli.main, everlog.actors.hosting.host, everlog.actors.agent.agent_setup as s\n"
        "from everlog.events import Section\n"
        "facts = s.sections.TemplateContext('sam', ())\n"
        "c = s.configuration(s.Settings(sections=[Section('a', 'plain')]), None, {}, {}, facts=facts)\n"
        "assert c.text == 'plain', c\n"
        "print('jinja2' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"
