// A server has pages at addresses like `/docs/guides/policies`. The static site has files like `guides/policies.html`,
// in any folder of any host. Attributes of the page's body say where its root is and how its file names end.
const root = (): string => document.body.dataset.root ?? '/docs/';
const ending = (): string => document.body.dataset.ending ?? '';

/** Returns the address of a page, such as `guides/policies#a-gap`. */
export function pageUrl(path: string): string {
  const [page = '', anchor] = path.split('#');
  return `${root()}${page}${ending()}${anchor === undefined ? '' : `#${anchor}`}`;
}

/** Returns the address of the reference, or of one of its operations. */
export function referenceUrl(entry?: { readonly tag: string; readonly id: string }): string {
  const start = ending() === '' ? root().replace(/\/$/, '') : `${root()}reference${ending()}`;
  return entry === undefined ? start : `${start}#/${entry.tag}/${entry.id}`;
}

/** Reads a file of the documentation, such as `settings.json`. */
export async function readJson<Value>(path: string): Promise<Value> {
  const response = await fetch(root() + path);
  if (!response.ok) throw new Error(`\`${path}\` returned ${response.status}`);
  return (await response.json()) as Value;
}
