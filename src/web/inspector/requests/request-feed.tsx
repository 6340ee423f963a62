import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { RecordedRequest } from '../../../sandbox/generated/schemas.ts';
import { ControlError, control } from '../control.ts';
import { archiveOf, withNewer } from './filters.ts';

/** The maximum number of requests, which is also the sandbox's limit. */
const MOST_REQUESTS = 10_000;
const PAGE = 1000;
const WAIT_MS = 20_000;
const RETRY_MS = 1000;

/** The requests of the sandbox, oldest first. They stay in memory while another page is open. */
export const requests = signal<readonly RecordedRequest[]>([]);
/** The reason why no further requests arrive. Empty while the sandbox responds. */
export const interruption = signal('');

/** The number of requests that arrived since the page of requests was open. */
export const unseen = signal(0);

let cursor = 'start';
let isRead = false;
let followers = 0;
let stop = new AbortController();

/** Follows the requests while a component that needs them is shown. */
export function useRequests(): void {
  useEffect(() => {
    followers += 1;
    if (followers === 1) {
      stop = new AbortController();
      void followRequests(stop.signal);
    }
    return () => {
      followers -= 1;
      if (followers === 0) stop.abort();
    };
  }, []);
}

/** Sets the number of unseen requests to 0. */
export function seeRequests(): void {
  unseen.value = 0;
}

/** Adds requests as they arrive, until `leaving` is aborted. */
async function followRequests(leaving: AbortSignal): Promise<void> {
  while (!leaving.aborted) {
    try {
      const query = { after: cursor, limit: PAGE, wait_ms: WAIT_MS };
      const page = await control('listRequests', { query }, leaving);
      requests.value = withNewer(page.began_anew ? [] : requests.value, page.data, MOST_REQUESTS);
      cursor = page.cursor;
      if (isRead) unseen.value += page.data.length;
      isRead = page.data.length < PAGE;
      interruption.value = '';
    } catch (error) {
      if (leaving.aborted) return;
      interruption.value = (error as Error).message;
      // The log to which the cursor belongs may no longer exist.
      if (error instanceof ControlError && error.status > 0) cursor = 'start';
      await pause(RETRY_MS, leaving);
    }
  }
}

/** Deletes the requests on this page and in the sandbox. */
export async function deleteRequests(): Promise<void> {
  await control('deleteRequests', {});
}

/** Downloads some of the requests as an HTTP Archive. */
export async function downloadArchive(chosen: readonly RecordedRequest[]): Promise<void> {
  try {
    const archive = await control('exportRequests', { query: { limit: MOST_REQUESTS } });
    const blob = new Blob([JSON.stringify(archiveOf(archive, chosen))], { type: 'application/json' });
    const link = document.createElement('a');
    link.href = URL.createObjectURL(blob);
    link.download = 'requests.har';
    link.click();
    URL.revokeObjectURL(link.href);
  } catch (error) {
    interruption.value = (error as Error).message;
  }
}

function pause(ms: number, leaving: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    leaving.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
