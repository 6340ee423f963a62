import { setTimeout as pause } from 'node:timers/promises';
import { SandboxUnavailableError } from './sandbox-address.ts';

/** Callbacks while following a log of a sandbox. */
export interface FeedObserver {
  /** Called once the starting position is fixed: later entries are not missed. */
  onStart(): void;
  /** The sandbox cannot be reached any more. */
  onDisconnect(error: SandboxUnavailableError): void;
  onReconnect(): void;
  /** The log was emptied, or the sandbox restarted with an empty one. */
  onReset(): void;
}

/** A page of a log, oldest entry first. */
interface Page<Entry> {
  readonly data: readonly Entry[];
  readonly cursor: string;
  readonly began_anew: boolean;
}

/** Fetches the page after a position, waiting up to `waitMs` if there is nothing. */
type FetchPage<Entry> = (after: string, waitMs: number) => Promise<Page<Entry>>;

export const WAIT_MS = 25_000;
const RETRY_MS = 500;

/**
 * Yields the entries of a log after a position, in order, until `signal` is aborted. Reconnects when the sandbox becomes
 * unavailable; throws when it is unavailable at the start.
 */
export async function* followPages<Entry>(
  fetchPage: FetchPage<Entry>,
  after: string,
  { signal, observer }: { readonly signal: AbortSignal; readonly observer: FeedObserver },
): AsyncGenerator<Entry> {
  try {
    let page = await fetchPage(after, 0);
    observer.onStart();
    let isDisconnected = false;
    while (!signal.aborted) {
      if (page.began_anew) observer.onReset();
      yield* page.data;
      const { cursor } = page;
      for (;;) {
        try {
          page = await fetchPage(cursor, isDisconnected ? 0 : WAIT_MS);
          if (isDisconnected) observer.onReconnect();
          isDisconnected = false;
          break;
        } catch (error) {
          if (!(error instanceof SandboxUnavailableError)) throw error;
          if (!isDisconnected) observer.onDisconnect(error);
          isDisconnected = true;
          await pause(RETRY_MS, undefined, { signal });
        }
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** Yields the existing entries after a position of a log, then ends. */
export async function* listPages<Entry>(fetchPage: FetchPage<Entry>, after: string): AsyncGenerator<Entry> {
  for (let position = after; ; ) {
    const { data, cursor } = await fetchPage(position, 0);
    if (data.length === 0) return;
    yield* data;
    position = cursor;
  }
}
