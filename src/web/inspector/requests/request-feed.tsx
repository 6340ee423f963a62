import { signal } from '@preact/signals';
import type { RecordedRequest } from '../../../sandbox/generated/schemas.ts';
import { ControlError, control } from '../control.ts';
import { archiveOf, withNewer } from './filters.ts';

/** The maximum number of requests, which is also the sandbox's limit. */
const MOST_REQUESTS = 10_000;
const WAIT_MS = 20_000;
const RETRY_MS = 1000;

/** The requests of the sandbox, oldest first. They stay in memory while another page is open. */
export const requests = signal<readonly RecordedRequest[]>([]);
/** The reason why no further requests arrive. Empty while the sandbox responds. */
export const interruption = signal('');

let cursor = 'start';

/** Adds requests as they arrive, until `leaving` is aborted. */
export async function followRequests(leaving: AbortSignal): Promise<void> {
  while (!leaving.aborted) {
    try {
      const query = { after: cursor, limit: 1000, wait_ms: WAIT_MS };
      const page = await control('listRequests', { query }, leaving);
      requests.value = withNewer(page.began_anew ? [] : requests.value, page.data, MOST_REQUESTS);
      cursor = page.cursor;
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
