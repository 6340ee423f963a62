/** Query parameters as sent; a repeated one, or one named `name[]`, is a list. */
export type Query = Record<string, string | string[]>;

const none: Query = Object.freeze({});

/** Parses the query of a request target. Invalid percent-encoding is kept unchanged, as browsers do. */
export function parseQuery(target: string): Query {
  const mark = target.indexOf('?');
  if (mark === -1 || mark === target.length - 1) return none;
  const query: Query = Object.create(null);
  for (const [sentName, value] of new URLSearchParams(target.slice(mark + 1))) {
    const isList = sentName.endsWith('[]');
    const name = isList ? sentName.slice(0, -2) : sentName;
    const before = query[name];
    if (before === undefined) query[name] = isList ? [value] : value;
    // A head holds thousands of values of one name: copying the list for each would take quadratic time.
    else if (Array.isArray(before)) before.push(value);
    else query[name] = [before, value];
  }
  return query;
}
