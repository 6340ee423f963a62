import { useSignal } from '@preact/signals';
import { Copy } from './copy.tsx';

const OPEN_DEPTH = 3;
const MAX_ITEMS = 200;
const MAX_CHARACTERS = 2000;
const INDENT = 2;

/** JSON as a tree that folds, with a search, and buttons that copy a value's path. */
export function JsonTree({ value, label }: { readonly value: unknown; readonly label: string }) {
  const wanted = useSignal('');
  return (
    <section aria-label={label}>
      <div class="json-bar">
        <input
          type="search"
          aria-label={`Search in ${label}`}
          placeholder="Search names and values"
          value={wanted}
          onInput={({ currentTarget }) => {
            wanted.value = currentTarget.value;
          }}
        />
        <Copy text={() => JSON.stringify(value, null, INDENT)} what={label}>
          Copy
        </Copy>
      </div>
      <div class="json" tabIndex={0} role="region" aria-label={`${label} as a tree`}>
        <ul>
          <Node value={value} path="" depth={0} wanted={wanted.value.trim().toLowerCase()} />
        </ul>
      </div>
    </section>
  );
}

interface NodeProps {
  readonly name?: string | number;
  readonly value: unknown;
  readonly path: string;
  readonly depth: number;
  readonly wanted: string;
}

/** Returns the path of a member, such as `data.items[2]["content-type"]`. */
function memberPath(path: string, name: string | number): string {
  if (typeof name === 'number') return `${path}[${name}]`;
  if (!/^[A-Za-z_$][\w$]*$/.test(name)) return `${path}[${JSON.stringify(name)}]`;
  return path === '' ? name : `${path}.${name}`;
}

/** Returns whether a name or a value in a tree contains the search text. */
function contains(value: unknown, name: string | number | undefined, wanted: string): boolean {
  if (
    String(name ?? '')
      .toLowerCase()
      .includes(wanted)
  )
    return true;
  if (typeof value === 'object' && value !== null) {
    return Object.entries(value).some(([key, each]) => contains(each, key, wanted));
  }
  return String(value).toLowerCase().includes(wanted);
}

function Node({ name, value, path, depth, wanted }: NodeProps) {
  if (wanted !== '' && !contains(value, name, wanted)) return null;
  const heading = name !== undefined && (
    <>
      <span class="name">{name}</span>:{' '}
    </>
  );
  if (typeof value !== 'object' || value === null) {
    return (
      <li class="leaf">
        {heading}
        <Leaf value={value} wanted={wanted} />
        {path !== '' && <Copy text={path} what={`the path ${path}`} />}
      </li>
    );
  }
  const isList = Array.isArray(value);
  const members: (readonly [string | number, unknown])[] = isList
    ? value.map((item, index) => [index, item] as const)
    : Object.entries(value);
  const shown = members.slice(0, MAX_ITEMS);
  const [open, close] = isList ? ['[', ']'] : ['{', '}'];
  return (
    <li class="branch">
      <details open={depth < OPEN_DEPTH || wanted !== ''}>
        <summary>
          {heading}
          {open}
          <span class="quiet">{members.length}</span>
          {close}
        </summary>
        <ul>
          {shown.map(([key, each]) => (
            <Node
              key={key}
              name={key}
              value={each}
              path={memberPath(path, key)}
              depth={depth + 1}
              wanted={
                String(name ?? '')
                  .toLowerCase()
                  .includes(wanted)
                  ? ''
                  : wanted
              }
            />
          ))}
          {members.length > shown.length && (
            <li class="leaf quiet">and {members.length - shown.length} more, which "Copy" includes</li>
          )}
        </ul>
      </details>
      {path !== '' && <Copy text={path} what={`the path ${path}`} />}
    </li>
  );
}

function Leaf({ value, wanted }: { readonly value: unknown; readonly wanted: string }) {
  const kind = typeof value === 'string' ? 'string' : typeof value === 'number' ? 'number' : 'word';
  const text = JSON.stringify(value) ?? 'undefined';
  const shown = text.length > MAX_CHARACTERS ? `${text.slice(0, MAX_CHARACTERS)}…` : text;
  const at = wanted === '' ? -1 : shown.toLowerCase().indexOf(wanted);
  if (at === -1) return <span class={kind}>{shown}</span>;
  return (
    <span class={kind}>
      {shown.slice(0, at)}
      <mark>{shown.slice(at, at + wanted.length)}</mark>
      {shown.slice(at + wanted.length)}
    </span>
  );
}

/** The maximum length of a string in a block, because longer strings make the page slow. */
const MAX_BLOCK_CHARACTERS = 200_000;

/** A value as indented JSON. A string is shown as it is. */
export function CodeBlock({ value, label }: { readonly value: unknown; readonly label: string }) {
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2);
  return (
    <pre tabIndex={0} role="region" aria-label={label}>
      {text.length > MAX_BLOCK_CHARACTERS ? `${text.slice(0, MAX_BLOCK_CHARACTERS)}\n… (cut)` : text}
    </pre>
  );
}
