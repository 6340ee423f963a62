import { dirname, join } from 'node:path';
import { Marked, type Tokens } from 'marked';

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
      code({ text, lang }) {
        const label = lang === undefined || lang === '' ? 'Code' : `Code: ${lang}`;
        return `<pre tabindex="0" role="region" aria-label="${label}"><code>${escapeHtml(text)}</code></pre>\n`;
      },
      link({ href, tokens }: Tokens.Link) {
        const text = this.parser.parseInline(tokens);
        const target = targetOf(href, file, known);
        return target === undefined ? text : `<a href="${target}">${text}</a>`;
      },
      // HTML comments mark the examples that tests run.
      html: () => '',
      // CHOICE: pages have no pictures, because the package contains no pictures of docs/, and pages load nothing
      // from other hosts.
      image: () => '',
      paragraph({ tokens }) {
        const text = this.parser.parseInline(tokens);
        return text === '' ? '' : `<p>${text}</p>\n`;
      },
    },
  });
  const html = marked
    .parse(markdown, { async: false })
    .replaceAll('<table>', '<div class="wide" tabindex="0" role="region" aria-label="Table"><table>')
    .replaceAll('</table>', '</table></div>');
  const title = /^# (.*)$/m.exec(markdown)?.[1] ?? file;
  return { title, html };
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
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
