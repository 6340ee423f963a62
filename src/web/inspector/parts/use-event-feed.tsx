import { type Signal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { SandboxEvent } from '../../../sandbox/generated/schemas.ts';
import { control } from '../control.ts';
import { appendEvents, eventFeed } from '../event-list.ts';

const WAIT_MS = 20_000;

/** Returns the events of one type, or all events, as they are recorded, and the reason of an interruption. */
export function useEventFeed(type?: string): {
  readonly events: Signal<readonly SandboxEvent[]>;
  readonly interruption: Signal<string>;
} {
  const events = useSignal<readonly SandboxEvent[]>([]);
  const interruption = useSignal('');
  useEffect(() => {
    const leaving = new AbortController();
    void eventFeed({
      signal: leaving.signal,
      read: (after) => {
        const query = {
          after,
          limit: 100,
          wait_ms: WAIT_MS,
          ...(type === undefined ? {} : { type: [type] }),
        };
        return control('listEvents', { query }, leaving.signal);
      },
      add: (page) => {
        events.value = appendEvents(events.value, page);
        interruption.value = '';
      },
      fail: (message) => {
        interruption.value = message;
      },
    });
    return () => leaving.abort();
  }, []);
  return { events, interruption };
}
