/** The route in the URL fragment, such as `#/requests/3f2b?status=4xx`. */
export interface Route {
  readonly page: string;
  /** The segments after the page's name. */
  readonly path: readonly string[];
  readonly query: Readonly<Record<string, string>>;
}

/** Parses the fragment of an address, which begins with `#`. The default page is Home. */
export function parseRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#?\/?/, '').split('?', 2);
  const [page = '', ...rest] = path
    .split('/')
    .filter((segment) => segment !== '')
    .map(decode);
  return {
    page: page === '' ? 'home' : page,
    path: rest,
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}

/** Returns the fragment of a page's address, which begins with `#`. Empty values of the query are omitted. */
export function hrefOf(page: string, path: readonly string[] = [], query: Route['query'] = {}): string {
  const set = Object.entries(query).filter(([, value]) => value !== '');
  const text = set.length === 0 ? '' : `?${new URLSearchParams(set)}`;
  return `#/${[page, ...path].map(encodeURIComponent).join('/')}${text}`;
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
