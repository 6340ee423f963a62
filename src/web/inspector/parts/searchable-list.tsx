import { RefreshCw, SearchX } from 'lucide';
import type { ComponentChildren } from 'preact';
import { goTo, route, setQuery } from '../router.tsx';
import { hrefOf } from '../routes.ts';
import { Icon } from './icon.tsx';
import { matching } from './matching.ts';
import { Empty, Failure, Skeleton } from './states.tsx';
import { type Column, VirtualTable } from './virtual-table.tsx';

interface SearchableListProps<Row> {
  /** The first segment of the page's address. */
  readonly page: string;
  readonly title: string;
  /** What the rows are called, one and many, such as `['wallet', 'wallets']`. */
  readonly nouns: readonly [string, string];
  /** The names of the members that the filter compares, such as `name or id`. */
  readonly searchLabel: string;
  /** The rows. Undefined while they are loaded. */
  readonly rows: readonly Row[] | undefined;
  readonly error: string;
  /** Loads the rows again. */
  readonly reload?: () => void;
  readonly columns: readonly Column<Row>[];
  readonly idOf: (row: Row) => string;
  readonly textsOf: (row: Row) => readonly (string | null | undefined)[];
  readonly rowClass?: (row: Row) => string;
  /** Buttons beside the title. */
  readonly actions?: ComponentChildren;
  /** Filters and pictures between the title and the rows. */
  readonly above?: ComponentChildren;
  /** Shown if the list has no rows. */
  readonly empty?: ComponentChildren;
  /** The panel of the open row. `row` is undefined if the row is not in the list. `back` is the list's address. */
  readonly detail: (id: string, row: Row | undefined, back: string) => ComponentChildren;
}

/** A page with a searchable table, and the open row beside it. */
export function SearchableList<Row>(props: SearchableListProps<Row>) {
  const { page, title, nouns, rows, reload, idOf } = props;
  const { path, query } = route.value;
  const [opened] = path;
  const text = query.text ?? '';
  const shown = matching(rows ?? [], text, props.textsOf);
  const { tab: _tab, ...kept } = query;
  return (
    <div class={`page split ${opened === undefined ? '' : 'opened'}`}>
      <section class="list" aria-label={`All ${nouns[1]}`}>
        <div class="title">
          <h1>{title}</h1>
          <span class="count" role="status">
            {shown.length} {shown.length === 1 ? nouns[0] : nouns[1]}
          </span>
          <div class="actions">
            {props.actions}
            {reload !== undefined && (
              <button type="button" class="plain" title="Refresh" aria-label="Refresh" onClick={reload}>
                <Icon of={RefreshCw} />
              </button>
            )}
          </div>
        </div>
        <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
          <label class="wide">
            Filter by {props.searchLabel}
            <input
              type="search"
              value={text}
              onInput={({ currentTarget }) => setQuery({ text: currentTarget.value })}
            />
          </label>
        </form>
        {props.above}
        <Failure message={props.error} {...(reload === undefined ? {} : { retry: reload })} />
        {rows === undefined && props.error === '' ? (
          <Skeleton lines={12} />
        ) : shown.length === 0 ? (
          (rows?.length ?? 0) > 0 ? (
            <Empty icon={SearchX} title={`No ${nouns[0]} matches “${text}”`}>
              <button type="button" onClick={() => setQuery({ text: '' })}>
                Show all
              </button>
            </Empty>
          ) : (
            (props.empty ?? <Empty icon={SearchX} title={`No ${nouns[1]} yet`} />)
          )
        ) : (
          <VirtualTable
            label={title}
            rows={shown}
            columns={props.columns}
            idOf={idOf}
            opened={opened}
            open={(row) => goTo(hrefOf(page, [idOf(row)], kept))}
            {...(props.rowClass === undefined ? {} : { rowClass: props.rowClass })}
          />
        )}
      </section>
      {opened !== undefined &&
        props.detail(
          opened,
          (rows ?? []).find((row) => idOf(row) === opened),
          hrefOf(page, [], kept),
        )}
    </div>
  );
}
