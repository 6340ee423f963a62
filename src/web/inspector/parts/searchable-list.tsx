import type { ComponentChildren } from 'preact';
import { goTo, route, setQuery } from '../router.tsx';
import { hrefOf } from '../routes.ts';
import { matching } from './matching.ts';
import { type Column, VirtualTable } from './virtual-table.tsx';

interface SearchableListProps<Row> {
  /** The first segment of the page's address. The second segment is the id of the open row. */
  readonly page: string;
  readonly title: string;
  /** The words for one row and for several rows, such as `['user', 'users']`. */
  readonly nouns: readonly [string, string];
  /** The label of the search field. */
  readonly searchLabel: string;
  readonly rows: readonly Row[] | undefined;
  /** The reason why the rows cannot be read. Empty if they can. */
  readonly error: string;
  readonly reload?: () => void;
  readonly columns: readonly Column<Row>[];
  readonly idOf: (row: Row) => string;
  readonly textsOf: (row: Row) => readonly (string | null | undefined)[];
  readonly rowClass?: (row: Row) => string;
  /** The content of the open row. `row` is undefined if the row is not in the list. */
  readonly detail: (id: string, row: Row | undefined) => ComponentChildren;
}

/** A page with a searchable table, and the open row beside it. */
export function SearchableList<Row>(props: SearchableListProps<Row>) {
  const { page, title, nouns, rows = [], reload, idOf } = props;
  const { path, query } = route.value;
  const [opened] = path;
  const text = query.text ?? '';
  const shown = matching(rows, text, props.textsOf);
  return (
    <div class={`page split ${opened === undefined ? '' : 'opened'}`}>
      <section class="list" aria-label={`All ${nouns[1]}`}>
        <h1>{title}</h1>
        <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
          <label>
            {props.searchLabel}
            <input
              type="search"
              value={text}
              onInput={({ currentTarget }) => setQuery({ text: currentTarget.value })}
            />
          </label>
          <span class="count" role="status">
            {shown.length} {shown.length === 1 ? nouns[0] : nouns[1]}
          </span>
          {reload !== undefined && (
            <button type="button" onClick={reload}>
              Read again
            </button>
          )}
        </form>
        {props.error !== '' && <p role="alert">{props.error}</p>}
        <VirtualTable
          label={title}
          rows={shown}
          columns={props.columns}
          idOf={idOf}
          opened={opened}
          open={(row) => goTo(hrefOf(page, [idOf(row)], query))}
          {...(props.rowClass === undefined ? {} : { rowClass: props.rowClass })}
        />
      </section>
      {opened !== undefined && (
        <section class="detail" aria-label={`One ${nouns[0]}`}>
          <p>
            <a class="back" href={hrefOf(page, [], query)}>
              Close
            </a>
          </p>
          {props.detail(
            opened,
            rows.find((row) => idOf(row) === opened),
          )}
        </section>
      )}
    </div>
  );
}
