import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { rowAfterKey, topShowing, visibleRows } from './visible-rows.ts';

/** In pixels. The style sheet contains the same height. */
const ROW_HEIGHT = 32;

export interface Column<Row> {
  readonly title: string;
  /** The class of the column's cells, which sets its width. */
  readonly name: string;
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

/** A table of any length that draws only the visible rows. Arrow keys move, and Enter opens a row. */
export function VirtualTable<Row>(props: TableProps<Row>) {
  const { rows, columns, idOf, opened, open } = props;
  const grid = useRef<HTMLDivElement>(null);
  const view = useSignal({ top: 0, height: 800 });
  const active = useSignal<string | undefined>(undefined);
  useLayoutEffect(() => {
    const element = grid.current!;
    const measure = () => {
      view.value = { top: element.scrollTop, height: element.clientHeight - ROW_HEIGHT };
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
    const element = grid.current!;
    const shown = { top: element.scrollTop, height: element.clientHeight - ROW_HEIGHT };
    element.scrollTop = topShowing(openedAt, { ...shown, rowHeight: ROW_HEIGHT });
  }, [opened, openedAt]);
  const { first, end } = visibleRows({ ...view.value, count: rows.length, rowHeight: ROW_HEIGHT });
  const current = rows.findIndex((row) => idOf(row) === (active.value ?? opened));

  const onKeyDown = (event: KeyboardEvent): void => {
    const row = rows[current];
    if (event.key === 'Enter' && row !== undefined) open(row);
    const pageRows = Math.floor(view.value.height / ROW_HEIGHT);
    const target = rowAfterKey(event.key, { current, count: rows.length, pageRows });
    if (target === undefined) return;
    event.preventDefault();
    active.value = idOf(rows[target]!);
    grid.current!.scrollTop = topShowing(target, { ...view.value, rowHeight: ROW_HEIGHT });
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
          {columns.map(({ title, name }) => (
            <span role="columnheader" class={name} key={name}>
              {title}
            </span>
          ))}
        </div>
      </div>
      <div role="rowgroup" class="rows" style={{ height: `${rows.length * ROW_HEIGHT}px` }}>
        {rows.slice(first, end).map((row, offset) => (
          <div
            role="row"
            id={`row-${idOf(row)}`}
            key={idOf(row)}
            class={`row ${props.rowClass?.(row) ?? ''} ${first + offset === current ? 'active' : ''}`}
            aria-rowindex={first + offset + 2}
            aria-selected={idOf(row) === opened}
            style={{ transform: `translateY(${(first + offset) * ROW_HEIGHT}px)` }}
            onClick={() => {
              active.value = idOf(row);
              open(row);
            }}
          >
            {columns.map(({ name, cell }) => (
              <span role="gridcell" class={name} key={name}>
                {cell(row)}
              </span>
            ))}
          </div>
        ))}
      </div>
    </div>
  );
}
