import { useSignal } from '@preact/signals';
import type { WebhookDelivery, WebhookEndpoint } from '../../../generated/schemas.ts';
import type { SandboxEvent } from '../../../sandbox/generated/schemas.ts';
import { readApi } from '../api.ts';
import { control } from '../control.ts';
import { filterEvents } from '../event-list.ts';
import { CodeBlock } from '../parts/code-block.tsx';
import { Delivery } from '../parts/delivery.tsx';
import { useEventFeed } from '../parts/use-event-feed.tsx';
import { useLoaded } from '../parts/use-loaded.tsx';
import { type Column, VirtualTable } from '../parts/virtual-table.tsx';
import { goTo, route, setQuery } from '../router.tsx';
import { hrefOf } from '../routes.ts';
import { dateAndTime, timeOfDay } from '../texts.ts';

const columns: readonly Column<SandboxEvent>[] = [
  { title: 'Time', name: 'time', cell: ({ created_at_ms }) => timeOfDay(created_at_ms) },
  { title: 'Type', name: 'operation', cell: ({ type }) => type },
  { title: 'Id', name: 'wallet', cell: ({ id }) => id },
];

/** The events of the sandbox as they are recorded, and the deliveries of the open event. */
export function Page() {
  const { events, interruption } = useEventFeed();
  const { path, query } = route.value;
  const [opened] = path;
  const shown = filterEvents(events.value, query.text ?? '');
  const event = events.value.find(({ id }) => id === opened);
  return (
    <div class={`page split ${opened === undefined ? '' : 'opened'}`}>
      <section class="list" aria-label="All events">
        <h1>Events</h1>
        <form class="filters" role="search" onSubmit={(submitted) => submitted.preventDefault()}>
          <label>
            Type, id or a value
            <input
              type="search"
              value={query.text ?? ''}
              onInput={({ currentTarget }) => setQuery({ text: currentTarget.value })}
            />
          </label>
          <span class="count" role="status">
            {shown.length} {shown.length === 1 ? 'event' : 'events'}
          </span>
        </form>
        <Trigger />
        {interruption.value !== '' && <p role="alert">{interruption.value}</p>}
        <VirtualTable
          label="Events, newest first"
          rows={shown}
          columns={columns}
          idOf={({ id }) => id}
          opened={opened}
          open={({ id }) => goTo(hrefOf('events', [id], query))}
        />
      </section>
      {opened !== undefined && (
        <section class="detail" aria-label="Event">
          <p>
            <a class="back" href={hrefOf('events', [], query)}>
              Close
            </a>
          </p>
          {event === undefined ? (
            <p class="empty">There is no event {opened}.</p>
          ) : (
            <EventDetail event={event} />
          )}
        </section>
      )}
    </div>
  );
}

function Trigger() {
  const type = useSignal('wallet.funds_deposited');
  const set = useSignal('{}');
  const note = useSignal('');
  const trigger = async (submitted: Event): Promise<void> => {
    submitted.preventDefault();
    try {
      const event = await control('triggerEvent', { body: { type: type.value, set: JSON.parse(set.value) } });
      note.value = `recorded ${event.id}`;
    } catch (error) {
      note.value = (error as Error).message;
    }
  };
  return (
    <details>
      <summary>Trigger an event</summary>
      <form class="fields" onSubmit={trigger}>
        <label>
          Event type
          <input value={type} onInput={({ currentTarget }) => (type.value = currentTarget.value)} />
        </label>
        <label>
          Values by path, as JSON
          <input value={set} onInput={({ currentTarget }) => (set.value = currentTarget.value)} />
        </label>
        <button type="submit">Trigger</button>
      </form>
      <p role="status">{note.value}</p>
    </details>
  );
}

function EventDetail({ event }: { readonly event: SandboxEvent }) {
  const note = useSignal('');
  const replay = async (): Promise<void> => {
    try {
      const { id } = await control('replayEvent', { path: { event_id: event.id } });
      note.value = `recorded again as ${id}`;
    } catch (error) {
      note.value = (error as Error).message;
    }
  };
  return (
    <>
      <h2>{event.type}</h2>
      <p>{dateAndTime(event.created_at_ms)} UTC</p>
      <p class="actions">
        <button type="button" onClick={replay}>
          Record again
        </button>
        <span role="status">{note.value}</span>
      </p>
      <Deliveries eventId={event.id} />
      <h3>Payload</h3>
      <CodeBlock value={event.payload} label="Payload" />
    </>
  );
}

interface OwnDelivery {
  readonly endpoint: WebhookEndpoint;
  readonly delivery: WebhookDelivery;
}

async function deliveriesOf(eventId: string, signal: AbortSignal): Promise<OwnDelivery[]> {
  const { data: endpoints } = await readApi('listWebhookEndpoints', { query: { limit: 100 } }, signal);
  const found = await Promise.all(
    endpoints.map(async (endpoint) => {
      const path = { endpoint_id: endpoint.id };
      const { data } = await readApi('listWebhookDeliveries', { path, query: { limit: 100 } }, signal);
      return data
        .filter(({ event_id }) => event_id === eventId)
        .map((delivery): OwnDelivery => ({ endpoint, delivery }));
    }),
  );
  return found.flat();
}

function Deliveries({ eventId }: { readonly eventId: string }) {
  const { value, error, reload } = useLoaded((signal) => deliveriesOf(eventId, signal), [eventId]);
  return (
    <section aria-label="Deliveries">
      <h3>Deliveries</h3>
      <p class="actions">
        <button type="button" onClick={reload}>
          Read again
        </button>
      </p>
      {error.value !== '' && <p role="alert">{error.value}</p>}
      {value.value?.length === 0 && <p class="empty">No endpoint among its latest 100 deliveries has it.</p>}
      {value.value?.map(({ endpoint, delivery }) => (
        <Delivery key={delivery.id} delivery={delivery} onReplayed={reload}>
          to <a href={hrefOf('webhooks', [endpoint.id])}>{endpoint.url}</a>
        </Delivery>
      ))}
    </section>
  );
}
