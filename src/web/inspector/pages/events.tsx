import { type Signal, useSignal } from '@preact/signals';
import { Radio, SearchX } from 'lucide';
import { useEffect } from 'preact/hooks';
import type { WebhookDelivery, WebhookEndpoint } from '../../../generated/schemas.ts';
import type { SandboxEvent } from '../../../sandbox/generated/schemas.ts';
import { readApi } from '../api.ts';
import { control } from '../control.ts';
import { filterEvents, unsettledAfter, withRenewed } from '../event-list.ts';
import { subjectText, toneOf } from '../names.ts';
import { Delivery } from '../parts/delivery.tsx';
import { DetailPanel } from '../parts/detail-panel.tsx';
import { Fact } from '../parts/fact.tsx';
import { JsonTree } from '../parts/json-tree.tsx';
import { Empty, Failure } from '../parts/states.tsx';
import { SubjectFacts } from '../parts/subject.tsx';
import { Age, ExactTime } from '../parts/time.tsx';
import { useEventFeed } from '../parts/use-event-feed.tsx';
import { useLoaded } from '../parts/use-loaded.tsx';
import { type Column, VirtualTable } from '../parts/virtual-table.tsx';
import { goTo, route, setQuery } from '../router.tsx';
import { hrefOf } from '../routes.ts';

const columns: readonly Column<SandboxEvent>[] = [
  { title: 'Event', slot: 'lead', cell: ({ type }) => type },
  { title: 'About', width: 300, openedWidth: 190, slot: 'sub', isDim: true, cell: subjectText },
  {
    ...{ title: 'Deliveries', width: 96, slot: 'status', isExtra: true },
    cell: ({ deliveries }) => <DeliveryDots of={deliveries} />,
  },
  {
    ...{ title: 'Request', width: 90, isExtra: true },
    cell: ({ request_id: id }) => id !== null && <a href={hrefOf('requests', [id])}>Open</a>,
  },
  {
    ...{ title: 'Age', width: 90, align: 'end', isDim: true, slot: 'age' },
    cell: ({ created_at_ms: ms }) => <Age ms={ms} />,
  },
];

/** A dot for each endpoint, in the color of the delivery's status. */
function DeliveryDots({ of: deliveries }: { readonly of: SandboxEvent['deliveries'] }) {
  if (deliveries === null || deliveries.length === 0) return null;
  const counts = Map.groupBy(deliveries, ({ status }) => status);
  const text = [...counts].map(([status, own]) => `${own.length} ${status}`).join(', ');
  return (
    <span class="dots" role="img" aria-label={text} title={text}>
      {deliveries.map(({ id, status }) => (
        <i key={id} class={toneOf(status)} />
      ))}
    </span>
  );
}

const RENEWED_EVERY_MS = 2000;

/** Reads events again for as long as their deliveries are under way and the window is visible. */
function useDeliveryStates(events: Signal<readonly SandboxEvent[]>): void {
  useEffect(() => {
    const leaving = new AbortController();
    const renew = async (): Promise<void> => {
      const after = unsettledAfter(events.value);
      if (after === undefined || document.hidden) return;
      try {
        const { data } = await control('listEvents', { query: { after, limit: 100 } }, leaving.signal);
        events.value = withRenewed(events.value, data);
      } catch {
        // The feed of events shows why the sandbox does not respond.
      }
    };
    const timer = setInterval(() => void renew(), RENEWED_EVERY_MS);
    return () => {
      clearInterval(timer);
      leaving.abort();
    };
  }, []);
}

/** The events of the sandbox as they are recorded, and the deliveries of the open event. */
export function Page() {
  const { events, interruption } = useEventFeed();
  useDeliveryStates(events);
  const { path, query } = route.value;
  const [opened] = path;
  const shown = filterEvents(events.value, query.text ?? '');
  const { tab: _tab, ...kept } = query;
  return (
    <div class={`page split ${opened === undefined ? '' : 'opened'}`}>
      <section class="list" aria-label="All events">
        <div class="title">
          <h1>Events</h1>
          <span class="count" role="status">
            {shown.length} {shown.length === 1 ? 'event' : 'events'}
          </span>
        </div>
        <form class="filters" role="search" onSubmit={(submitted) => submitted.preventDefault()}>
          <label class="wide">
            Filter by type, id or a value
            <input
              type="search"
              value={query.text ?? ''}
              onInput={({ currentTarget }) => setQuery({ text: currentTarget.value })}
            />
          </label>
        </form>
        <Trigger />
        <Failure message={interruption.value} />
        {shown.length === 0 ? (
          events.value.length > 0 ? (
            <Empty icon={SearchX} title="No event matches">
              <button type="button" onClick={() => setQuery({ text: '' })}>
                Show all
              </button>
            </Empty>
          ) : (
            <Empty icon={Radio} title="No events yet">
              <span>Every change of a wallet, user, intent or transaction records one.</span>
            </Empty>
          )
        ) : (
          <VirtualTable
            label="Events, newest first"
            rows={shown}
            columns={columns}
            idOf={({ id }) => id}
            opened={opened}
            open={({ id }) => goTo(hrefOf('events', [id], kept))}
          />
        )}
      </section>
      {opened !== undefined && (
        <EventDetail
          key={opened}
          id={opened}
          event={events.value.find(({ id }) => id === opened)}
          back={hrefOf('events', [], kept)}
        />
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

interface DetailProps {
  readonly id: string;
  readonly event: SandboxEvent | undefined;
  readonly back: string;
}

function EventDetail({ id, event, back }: DetailProps) {
  if (event === undefined) {
    return (
      <DetailPanel what="Event" id={id} back={back} title="Event">
        <p class="empty">There is no event {id}.</p>
      </DetailPanel>
    );
  }
  return (
    <DetailPanel
      what="Event"
      id={id}
      back={back}
      title={event.type}
      sub={<ExactTime ms={event.created_at_ms} />}
      tabs={[
        { title: 'Overview', content: () => <EventOverview event={event} /> },
        { title: 'Payload', content: () => <JsonTree value={event.payload} label="Payload" /> },
        { title: 'Raw', content: () => <JsonTree value={event} label="Event" /> },
      ]}
    />
  );
}

function EventOverview({ event }: { readonly event: SandboxEvent }) {
  const { request_id: cause } = event;
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
      <div class="actions">
        <button type="button" onClick={replay}>
          Record again
        </button>
        <span role="status">{note.value}</span>
      </div>
      <dl>
        <SubjectFacts of={event} />
        {cause !== null && (
          <Fact name="Caused by">
            <a href={hrefOf('requests', [cause])}>the request</a>
          </Fact>
        )}
      </dl>
      <Deliveries event={event} />
    </>
  );
}

interface OwnDelivery {
  readonly endpoint: WebhookEndpoint;
  readonly delivery: WebhookDelivery;
}

/** The deliveries of an event with their attempts, which the API lists by endpoint. */
async function deliveriesOf(
  progress: NonNullable<SandboxEvent['deliveries']>,
  signal: AbortSignal,
): Promise<OwnDelivery[]> {
  const { data: endpoints } = await readApi('listWebhookEndpoints', { query: { limit: 100 } }, signal);
  const found = await Promise.all(
    endpoints.map(async (endpoint) => {
      const wanted = progress.find(({ endpoint_id }) => endpoint_id === endpoint.id);
      if (wanted === undefined) return [];
      const path = { endpoint_id: endpoint.id };
      const { data } = await readApi('listWebhookDeliveries', { path, query: { limit: 100 } }, signal);
      return data
        .filter(({ id }) => id === wanted.id)
        .map((delivery): OwnDelivery => ({ endpoint, delivery }));
    }),
  );
  return found.flat();
}

function Deliveries({ event: { id, deliveries } }: { readonly event: SandboxEvent }) {
  const state = JSON.stringify(deliveries);
  const { value, error, reload } = useLoaded((signal) => deliveriesOf(deliveries ?? [], signal), [id, state]);
  return (
    <section aria-label="Deliveries">
      <h3>Deliveries</h3>
      <Failure message={error.value} retry={reload} />
      {value.value?.length === 0 && (
        <p class="empty">
          {deliveries === null || deliveries.length === 0
            ? 'No endpoint gets this event.'
            : 'It is older than the latest 100 deliveries of its endpoints.'}{' '}
          <a href={hrefOf('webhooks')}>Endpoints</a>
        </p>
      )}
      {value.value?.map(({ endpoint, delivery }) => (
        <Delivery key={delivery.id} delivery={delivery} onReplayed={reload}>
          to <a href={hrefOf('webhooks', [endpoint.id])}>{endpoint.url}</a>
        </Delivery>
      ))}
    </section>
  );
}
