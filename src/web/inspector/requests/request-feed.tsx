import { signal } from '@preact/signals';
import type { RecordedRequest } from '../../../sandbox/generated/schemas.ts';
import { ControlError, control } from '../control.ts';
import { archiveOf, withNewer } from './filters.ts';

/** The maximum number of requests, which is also the sandbox's limit. */
const MAX_REQUESTS = 10_000;
const PAGE = 1000;
const WAIT_MS = 20_000;
const RETRY_MS = 1000;

/** The requests of the sandbox, oldest first. Every page uses them. */
export const requests = signal<readonly RecordedRequest[]>([]);
/** The reason why no further requests arrive. Empty while the sandbox responds. */
export const interruption = signal('');

/** The number of requests that arrived since the page of requests was open. */
export const unseen = signal(0);

let cursor = 'start';
let isRead = false;

/** Sets the number of unseen requests to 0. */
export function seeRequests(): void {
  unseen.value = 0;
}

/** Adds requests as they arrive, for as long as the window is open. */
export async function followRequests(): Promise<void> {
  for (;;) {
    try {
      const query = { after: cursor, limit: PAGE, wait_ms: WAIT_MS };
      const page = await control('listRequests', { query });
      requests.value = withNewer(page.began_anew ? [] : requests.value, page.data, MAX_REQUESTS);
      cursor = page.cursor;
      if (isRead) unseen.value += page.data.length;
      isRead = page.data.length < PAGE;
      interruption.value = '';
    } catch (error) {
      interruption.value = (error as Error).message;
      // The log to which the cursor belongs may no longer exist.
      if (error instanceof ControlError && error.status > 0) cursor = 'start';
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

/** Deletes the requests in the sandbox. The feed then also removes them here. */
export async function deleteRequests(): Promise<void> {
  await control('deleteRequests', {});
}

/** Downloads some of the requests as an HTTP Archive. */
export async function downloadArchive(chosen: readonly RecordedRequest[]): Promise<void> {
  try {
    const archive = await control('exportRequests', { query: { limit: MAX_REQUESTS } });
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
