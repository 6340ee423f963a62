import { dirname, join } from 'node:path';
import { Marked, type Tokens } from 'marked';

/**
 * A guide as HTML, with links to other guides as they are served. `file`: relative to the root. `known`: files that are
 * served; links to others become text.
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
      // Code can be wider than the page: it is scrolled, also with the keyboard.
      code({ text, lang }) {
        const label = lang === undefined || lang === '' ? 'Code' : `Code: ${lang}`;
        return `<pre tabindex="0" role="region" aria-label="${label}"><code>${escapeHtml(text)}</code></pre>\n`;
      },
      link({ href, tokens }: Tokens.Link) {
        const text = this.parser.parseInline(tokens);
        const target = targetOf(href, file, known);
        return target === undefined ? text : `<a href="${target}">${text}</a>`;
      },
      // The marks of tests.
      html: () => '',
      // CHOICE: no pictures: the package has none of the files of docs/, and pages load nothing from other hosts.
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

// As code hosts make anchors of headings.
function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
