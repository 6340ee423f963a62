import { signal, useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { rowAfterKey, topShowing, visibleRows } from './visible-rows.ts';

const isNarrow = matchMedia('(max-width: 800px)');
const DENSE = 'dense';

/** Whether rows are 28 px high instead of 36. The browser keeps the choice. */
export const isDense = signal(localStorage.getItem(DENSE) === 'yes');

export function setDense(wanted: boolean): void {
  isDense.value = wanted;
  localStorage.setItem(DENSE, wanted ? 'yes' : 'no');
}

/** Returns the height in pixels. The style sheet draws the cards of a narrow window with the same height. */
function rowHeight(): number {
  if (isNarrow.matches) return 60;
  return isDense.value ? 28 : 36;
}

export interface Column<Row> {
  readonly title: string;
  /** In pixels. A column without a width takes the remaining space. */
  readonly width?: number;
  /** The width while a row is open. By default, `width`. */
  readonly openedWidth?: number;
  /** The place in the card that a narrow window draws. Other columns are left out there. */
  readonly slot?: 'lead' | 'status' | 'sub' | 'age';
  /** Whether the column is left out while a row is open. */
  readonly isExtra?: boolean;
  readonly align?: 'end';
  readonly isDim?: boolean;
  readonly cell: (row: Row) => ComponentChildren;
}

interface TableProps<Row> {
  readonly label: string;
  readonly rows: readonly Row[];
  readonly columns: readonly Column<Row>[];
  readonly idOf: (row: Row) => string;
  /** The id of the open row. */
  readonly opened: string | undefined;
  readonly open: (row: Row) => void;
  /** Returns the class of a row. */
  readonly rowClass?: (row: Row) => string;
}

function classOf<Row>({ width, slot, isExtra, align, isDim }: Column<Row>): string {
  return [
    ...(width === undefined ? ['wide'] : []),
    ...(slot === undefined ? [] : [slot]),
    ...(isExtra === true ? ['extra'] : []),
    ...(align === undefined ? [] : [align]),
    ...(isDim === true ? ['dim'] : []),
  ].join(' ');
}

function widthOf<Row>({ width, openedWidth }: Column<Row>) {
  if (width === undefined) return {};
  const opened = openedWidth === undefined ? {} : { '--opened-width': `${openedWidth}px` };
  return { style: { '--width': `${width}px`, ...opened } };
}

/** A table of any length that draws only the visible rows. Arrow keys move, and Enter opens a row. */
export function VirtualTable<Row>(props: TableProps<Row>) {
  const { rows, columns, idOf, opened, open } = props;
  const height = rowHeight();
  const grid = useRef<HTMLDivElement>(null);
  const view = useSignal({ top: 0, height: 800 });
  const active = useSignal<string | undefined>(undefined);
  useLayoutEffect(() => {
    const element = grid.current!;
    const measure = () => {
      view.value = { top: element.scrollTop, height: element.clientHeight - rowHeight() };
    };
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    element.addEventListener('scroll', measure, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener('scroll', measure);
    };
  }, []);
  const openedAt = opened === undefined ? -1 : rows.findIndex((row) => idOf(row) === opened);
  const shownFor = useRef<string | undefined>(undefined);
  useLayoutEffect(() => {
    // When an address opens a row, the table scrolls to it once, as soon as it is loaded. Later rows do not move the
    // scroll position.
    if (openedAt === -1 || shownFor.current === opened) return;
    shownFor.current = opened;
    // A row that was opened from elsewhere becomes the active row.
    active.value = opened;
    const element = grid.current!;
    const shown = { top: element.scrollTop, height: element.clientHeight - height };
    element.scrollTop = topShowing(openedAt, { ...shown, rowHeight: height });
  }, [opened, openedAt]);
  const { first, end } = visibleRows({ ...view.value, count: rows.length, rowHeight: height });
  const current = rows.findIndex((row) => idOf(row) === (active.value ?? opened));

  const onKeyDown = (event: KeyboardEvent): void => {
    const row = rows[current];
    if (event.key === 'Enter' && row !== undefined && event.target === grid.current) open(row);
    const pageRows = Math.floor(view.value.height / height);
    const target = rowAfterKey(event.key, { current, count: rows.length, pageRows });
    if (target === undefined) return;
    event.preventDefault();
    active.value = idOf(rows[target]!);
    grid.current!.scrollTop = topShowing(target, { ...view.value, rowHeight: height });
  };

  const isDrawn = current >= first && current < end;
  return (
    <div
      class="grid"
      role="grid"
      ref={grid}
      tabIndex={0}
      aria-label={props.label}
      aria-rowcount={rows.length + 1}
      aria-activedescendant={isDrawn ? `row-${idOf(rows[current]!)}` : undefined}
      onKeyDown={onKeyDown}
    >
      <div role="rowgroup" class="head">
        <div role="row" class="row" aria-rowindex={1}>
          {columns.map((column) => (
            <span role="columnheader" class={classOf(column)} key={column.title} {...widthOf(column)}>
              {column.title}
            </span>
          ))}
        </div>
      </div>
      <div role="rowgroup" class="rows" style={{ height: `${rows.length * height}px` }}>
        {rows.slice(first, end).map((row, offset) => (
          <div
            role="row"
            id={`row-${idOf(row)}`}
            key={idOf(row)}
            class={`row ${props.rowClass?.(row) ?? ''} ${first + offset === current ? 'active' : ''}`}
            aria-rowindex={first + offset + 2}
            aria-selected={idOf(row) === opened}
            style={{ transform: `translateY(${(first + offset) * height}px)`, height: `${height}px` }}
            onClick={(event) => {
              // A click on a link or a button in a row does not open the row.
              if ((event.target as Element).closest('a, button') !== null) return;
              active.value = idOf(row);
              open(row);
            }}
          >
            {columns.map((column) => (
              <span role="gridcell" class={classOf(column)} key={column.title} {...widthOf(column)}>
                {column.cell(row)}
              </span>
            ))}
          </div>
        ))}
      </div>
    </div>
  );
}
