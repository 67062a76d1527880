/** Reports as one HTML file that needs nothing else: no script, no request. All that comes from models is escaped. */

/** Text as it stands in SVG and HTML, in elements and in quoted attributes. */
export function escapeMarkup(text: string): string {
  return text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

const STYLE = `
:root { color-scheme: light dark; --line: #8884; --bar: #3b82a0; }
body { max-width: 76rem; margin: 24px auto; padding: 0 16px; font: 14px/1.5 system-ui, sans-serif; }
h1 { font-size: 22px; margin: 0; } h2 { font-size: 16px; margin: 32px 0 8px; }
p { margin: 4px 0; opacity: .8; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; } dd { margin: 0; }
pre { padding: 12px; background: #8882; border-radius: 6px; overflow: auto; }
table { margin: 8px 0; border-collapse: collapse; font-size: 12px; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 10px; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
.map td, .map th { padding: 2px 5px; border: 0; } .map td { min-width: 36px; height: 20px; }
code { font: 12px ui-monospace, monospace; }
.wide { overflow: auto; }
.charts { color-scheme: light; background: #fff; }
svg { max-width: none; display: block; }
`;

/** @param body markup, escaped already */
export function htmlPage(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${escapeMarkup(title)}</title>
<style>${STYLE}</style>
</head>
<body>
${body}
</body>
</html>
`;
}

/** @param pictures markup for a last column */
export function htmlTable(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  pictures?: readonly string[],
): string {
  const cells = (row: readonly string[], tag: string) =>
    row.map((cell) => `<${tag}>${escapeMarkup(cell)}</${tag}>`).join('');
  const body = rows.map(
    (row, i) => `<tr>${cells(row, 'td')}${pictures ? `<td>${pictures[i]!}</td>` : ''}</tr>`,
  );
  return `<div class="wide"><table><thead><tr>${cells(head, 'th')}</tr></thead><tbody>${body.join('\n')}</tbody></table></div>`;
}
