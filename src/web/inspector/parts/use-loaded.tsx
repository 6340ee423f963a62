import { type Signal, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';

/** The data of a page. `value` stays while it is loaded again. */
export interface Loaded<Value> {
  readonly value: Signal<Value | undefined>;
  /** The error message of a failure. Empty if there is none. */
  readonly error: Signal<string>;
  readonly isLoading: Signal<boolean>;
  readonly reload: () => void;
}

const MAX_PAGES = 10;

/** Reads all rows of a list of the control plane, at most ten pages of a thousand. */
export async function everyPage<Row>(
  read: (query: { readonly limit: number; readonly cursor?: string }) => Promise<{
    readonly data: readonly Row[];
    readonly next_cursor: string | null;
  }>,
): Promise<readonly Row[]> {
  const rows: Row[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const { data, next_cursor: next } = await read({ limit: 1000, ...(cursor === null ? {} : { cursor }) });
    rows.push(...data);
    if (next === null) break;
    cursor = next;
  }
  return rows;
}

/** Loads a value when the component appears, and again when one of `inputs` changes. */
export function useLoaded<Value>(
  load: (signal: AbortSignal) => Promise<Value>,
  inputs: readonly unknown[],
): Loaded<Value> {
  const value = useSignal<Value | undefined>(undefined);
  const error = useSignal('');
  const isLoading = useSignal(true);
  const round = useSignal(0);
  const reload = () => {
    round.value += 1;
  };
  useEffect(() => {
    value.value = undefined;
  }, inputs);
  useEffect(() => {
    const leaving = new AbortController();
    isLoading.value = true;
    load(leaving.signal).then(
      (loaded) => {
        if (leaving.signal.aborted) return;
        value.value = loaded;
        error.value = '';
        isLoading.value = false;
      },
      (cause: Error) => {
        if (leaving.signal.aborted) return;
        error.value = cause.message;
        isLoading.value = false;
      },
    );
    return () => leaving.abort();
  }, [...inputs, round.value]);
  return { value, error, isLoading, reload };
}

const RELOAD_MS = 1000;

/** Loads again when `change` changes: at most once a second, and not before the last load has ended. */
export function useReload(
  { isLoading, reload }: Pick<Loaded<unknown>, 'isLoading' | 'reload'>,
  change: unknown,
): void {
  const seen = useRef(change);
  const dueMs = useRef(0);
  useEffect(() => {
    if (isLoading.value || seen.current === change) return;
    const timer = setTimeout(
      () => {
        seen.current = change;
        dueMs.current = performance.now() + RELOAD_MS;
        reload();
      },
      Math.max(0, dueMs.current - performance.now()),
    );
    return () => clearTimeout(timer);
  }, [change, isLoading.value]);
}
