import { dirname, join } from 'node:path';
import { Marked, type Tokens } from 'marked';
import { highlight } from '../../src/web/docs/highlight.ts';

/**
 * Renders a guide as HTML.
 *
 * @param file the path relative to the root.
 * @param known the files that the server offers. Links to other files become text.
 */
export function renderGuide(
  markdown: string,
  file: string,
  known: ReadonlySet<string>,
): { title: string; html: string } {
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth, text }) {
        return `<h${depth} id="${anchorOf(text)}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
      // Code can be wider than the page. It can be scrolled, also with the keyboard.
      code({ text, lang = '' }) {
        const label = lang === '' ? 'Code' : `Code: ${lang}`;
        const tokens = highlight(text, lang).map(({ kind, text: part }) =>
          kind === undefined ? escapeHtml(part) : `<span class="hl-${kind}">${escapeHtml(part)}</span>`,
        );
        return `<div class="block"><pre tabindex="0" role="region" aria-label="${label}"><code>${tokens.join('')}</code></pre></div>\n`;
      },
      link({ href, tokens }: Tokens.Link) {
        const text = this.parser.parseInline(tokens);
        const target = targetOf(href, file, known);
        return target === undefined ? text : `<a href="${target}">${text}</a>`;
      },
      // HTML comments mark the examples that tests run.
      html: () => '',
      // CHOICE: pages have the drawings of the guides, and no screenshots, which would double the size of the package.
      image({ href, text }) {
        const name = /^pictures\/[\w-]+\.svg$/.exec(href)?.[0];
        return name === undefined ? '' : `<img src="/docs/${name}" alt="${escapeHtml(text)}">`;
      },
      paragraph({ tokens }) {
        const text = this.parser.parseInline(tokens);
        if (text === '') return '';
        return text.startsWith('<img ') ? `<figure>${text}</figure>\n` : `<p>${text}</p>\n`;
      },
    },
  });
  const html = marked
    .parse(markdown, { async: false })
    .replaceAll('<table>', '<div class="wide" tabindex="0" role="region" aria-label="Table"><table>')
    .replaceAll('</table>', '</table></div>');
  const title = /^# (.*)$/m.exec(markdown)?.[1] ?? file;
  return { title, html: file === SETTINGS ? withRowIds(html) : html };
}

const SETTINGS = 'docs/reference/settings.md';

/** Gives each row of the tables of settings the anchor of its variable or option, so that the search can link to it. */
function withRowIds(html: string): string {
  return html.replaceAll(
    /<tr>(?=\s*<td>(?:<code>([A-Z][A-Z_\d]+)<\/code>)?<\/td>\s*<td>(?:<code>--([\w-]+))?)/g,
    (row: string, variable?: string, option?: string) => {
      const name = variable ?? option;
      return name === undefined ? row : `<tr id="${name.toLowerCase()}">`;
    },
  );
}

function targetOf(href: string, file: string, known: ReadonlySet<string>): string | undefined {
  if (/^(https?:|#)/.test(href)) return href;
  const [path = '', anchor] = href.split('#');
  const target = join(dirname(file), path);
  if (!known.has(target)) return undefined;
  return `/${target.replace(/\.md$/, '')}${anchor === undefined ? '' : `#${anchor}`}`;
}

// Makes an anchor of a heading in the same way as code hosts.
function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
}

function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
