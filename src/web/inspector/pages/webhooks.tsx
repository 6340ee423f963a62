import { useSignal } from '@preact/signals';
import { Plus, Webhook } from 'lucide';
import type { WebhookEndpoint } from '../../../generated/schemas.ts';
import { readApi } from '../api.ts';
import { control } from '../control.ts';
import { ConfirmButton } from '../parts/confirm-button.tsx';
import { Delivery } from '../parts/delivery.tsx';
import { DetailPanel } from '../parts/detail-panel.tsx';
import { Fact } from '../parts/fact.tsx';
import { Icon } from '../parts/icon.tsx';
import { JsonTree } from '../parts/json-tree.tsx';
import { Label, Status } from '../parts/label.tsx';
import { Marked } from '../parts/prose.tsx';
import { SearchableList } from '../parts/searchable-list.tsx';
import { isRefusal, type Sending, SentResult, useSending } from '../parts/sent-result.tsx';
import { Empty, Failure } from '../parts/states.tsx';
import { ExactTime } from '../parts/time.tsx';
import { type Loaded, useLoaded } from '../parts/use-loaded.tsx';
import type { Column } from '../parts/virtual-table.tsx';
import { goTo } from '../router.tsx';
import { hrefOf } from '../routes.ts';
import { allPages } from '../wallet-facts.ts';

const columns: readonly Column<WebhookEndpoint>[] = [
  {
    ...{ title: 'URL', slot: 'lead' },
    cell: ({ url, description }) => (
      <span title={url}>
        {url} <span class="quiet">{description}</span>
      </span>
    ),
  },
  {
    title: 'Events',
    width: 240,
    slot: 'sub',
    isDim: true,
    cell: ({ event_types: types }) => types.join(', '),
  },
  { title: 'Status', width: 110, slot: 'status', cell: ({ status }) => <Status of={status} /> },
];

/** The webhook endpoints of the sandbox's app, and the open endpoint with its deliveries. */
export function Page() {
  const { value, error, reload } = useLoaded(
    (signal) =>
      allPages((cursor) => readApi('listWebhookEndpoints', { query: { limit: 100, ...cursor } }, signal)),
    [],
  );
  return (
    <SearchableList
      page="webhooks"
      title="Webhooks"
      nouns={['endpoint', 'endpoints']}
      searchLabel="URL, id or description"
      rows={value.value}
      error={error.value}
      reload={reload}
      columns={columns}
      idOf={({ id }) => id}
      textsOf={({ id, url, description }) => [id, url, description]}
      above={<CreateEndpoint isFirst={value.value?.length === 0} onCreated={reload} />}
      empty={
        <Empty icon={Webhook} title="No endpoints yet">
          <span>
            <Marked text="An endpoint receives signed events. Add its URL above, or run `custos listen`." />
          </span>
        </Empty>
      }
      detail={(id, _, back) => <EndpointDetail key={id} id={id} back={back} onChanged={reload} />}
    />
  );
}

interface CreateEndpointProps {
  /** Whether there is no endpoint. The form is open then. */
  readonly isFirst: boolean;
  readonly onCreated: () => void;
}

function CreateEndpoint({ isFirst, onCreated }: CreateEndpointProps) {
  const isOpen = useSignal<boolean | undefined>(undefined);
  const url = useSignal('');
  const types = useSignal('*');
  const sending = useSending();
  const create = async (submitted: Event): Promise<void> => {
    submitted.preventDefault();
    const body = { url: url.value.trim(), event_types: types.value.split(/[\s,]+/).filter(Boolean) };
    await sending.run(() =>
      control('sendRequest', { body: { operation: 'createWebhookEndpoint', path: {}, body } }),
    );
    onCreated();
    const sent = sending.result.value;
    if (sent?.status === 200 || sent?.status === 201) {
      isOpen.value = false;
      goTo(hrefOf('webhooks', [(sent.body as { id: string }).id]));
    }
  };
  return (
    <details
      open={isOpen.value ?? isFirst}
      onToggle={({ currentTarget }) => {
        isOpen.value = currentTarget.open;
      }}
    >
      <summary>Add an endpoint</summary>
      <form class="fields" onSubmit={create}>
        <label class="wide">
          URL
          <input
            required
            placeholder="https://localhost:3000/webhooks"
            value={url}
            onInput={({ currentTarget }) => (url.value = currentTarget.value)}
          />
        </label>
        <label>
          Event types
          <input value={types} onInput={({ currentTarget }) => (types.value = currentTarget.value)} />
        </label>
        <button type="submit" class="main">
          <Icon of={Plus} /> Add
        </button>
      </form>
      <SentResult sending={sending} />
    </details>
  );
}

interface EndpointDetailProps {
  readonly id: string;
  readonly back: string;
  readonly onChanged: () => void;
}

function EndpointDetail({ id, back, onChanged }: EndpointDetailProps) {
  const path = { endpoint_id: id };
  const endpoint = useLoaded((signal) => readApi('getWebhookEndpoint', { path }, signal), [id]);
  const deliveries = useLoaded(
    async (signal) => (await readApi('listWebhookDeliveries', { path, query: { limit: 50 } }, signal)).data,
    [id],
  );
  const sending = useSending();
  const send = async (operation: string, body?: object): Promise<void> => {
    await sending.run(() =>
      control('sendRequest', { body: { operation, path, ...(body === undefined ? {} : { body }) } }),
    );
    if (isRefusal(sending.result.value?.status ?? 0)) return;
    onChanged();
    if (operation === 'deleteWebhookEndpoint') goTo(back);
    else {
      endpoint.reload();
      deliveries.reload();
    }
  };
  const shown = endpoint.value.value;
  return (
    <DetailPanel
      what="Endpoint"
      id={id}
      back={back}
      title={shown?.url ?? 'Endpoint'}
      error={endpoint.error.value}
      isLoading={shown === undefined}
      tabs={
        shown === undefined
          ? []
          : [
              {
                title: 'Overview',
                content: () => (
                  <EndpointOverview endpoint={shown} deliveries={deliveries} sending={sending} send={send} />
                ),
              },
              {
                title: 'Change',
                content: () => <EndpointForm key={id} endpoint={shown} sending={sending} send={send} />,
              },
              { title: 'Raw', content: () => <JsonTree value={shown} label="Endpoint" /> },
            ]
      }
    />
  );
}

interface OverviewProps {
  readonly endpoint: WebhookEndpoint;
  readonly deliveries: Loaded<Awaited<ReturnType<typeof readApi<'listWebhookDeliveries'>>>['data']>;
  readonly sending: Sending;
  readonly send: (operation: string, body?: object) => Promise<void>;
}

function EndpointOverview({ endpoint, deliveries, sending, send }: OverviewProps) {
  const { description, status, disabled_reason: reason, event_types: types } = endpoint;
  const isOff = status !== 'enabled';
  const isRunning = sending.isRunning.value;
  return (
    <>
      <dl>
        {description !== null && <Fact name="Description">{description}</Fact>}
        <Fact name="Status">
          <Status of={status} /> {reason}
        </Fact>
        <Fact name="Events">{types.join(', ')}</Fact>
        <Fact name="Created">
          <ExactTime ms={endpoint.created_at} />
        </Fact>
        <Fact name="Deliveries">
          <span class="dots" role="img" aria-label="The latest deliveries, the newest first">
            {deliveries.value.value?.slice(0, 30).map((each) => (
              <i
                key={each.id}
                title={`${each.event_type}: ${each.status}`}
                class={each.status === 'delivered' ? 'good' : each.status === 'failed' ? 'bad' : 'warn'}
              />
            ))}
          </span>
        </Fact>
      </dl>
      <div class="actions">
        <button type="button" disabled={isRunning} onClick={() => send('testWebhookEndpoint', {})}>
          Send a test
        </button>
        <button
          type="button"
          disabled={isRunning}
          onClick={() => send('updateWebhookEndpoint', { status: isOff ? 'enabled' : 'disabled' })}
        >
          {isOff ? 'Enable' : 'Disable'}
        </button>
        <ConfirmButton question="Delete this endpoint?" onConfirm={() => void send('deleteWebhookEndpoint')}>
          Delete
        </ConfirmButton>
      </div>
      <SentResult sending={sending} />
      <section aria-label="Deliveries">
        <h3>
          Latest deliveries{' '}
          <button type="button" class="plain" onClick={deliveries.reload}>
            Refresh
          </button>
        </h3>
        <Failure message={deliveries.error.value} retry={deliveries.reload} />
        {deliveries.value.value?.length === 0 && <p class="empty">No deliveries yet.</p>}
        {deliveries.value.value?.map((delivery) => (
          <Delivery key={delivery.id} delivery={delivery} onReplayed={deliveries.reload}>
            <a href={hrefOf('events', [delivery.event_id])}>{delivery.event_type}</a>{' '}
            <Label>
              {delivery.attempts.length === 1 ? '1 attempt' : `${delivery.attempts.length} attempts`}
            </Label>
          </Delivery>
        ))}
      </section>
    </>
  );
}

/** The form of a stored endpoint: its URL, the events that it receives, and its description. */
function EndpointForm({ endpoint, sending, send }: Omit<OverviewProps, 'deliveries'>) {
  const url = useSignal(endpoint.url);
  const types = useSignal(endpoint.event_types.join(', '));
  const description = useSignal(endpoint.description ?? '');
  const save = (submitted: Event): void => {
    submitted.preventDefault();
    void send('updateWebhookEndpoint', {
      url: url.value.trim(),
      event_types: types.value.split(/[\s,]+/).filter(Boolean),
      description: description.value.trim() === '' ? null : description.value.trim(),
    });
  };
  return (
    <form onSubmit={save}>
      <div class="fields">
        <label class="wide">
          URL
          <input required value={url} onInput={({ currentTarget }) => (url.value = currentTarget.value)} />
        </label>
        <label class="wide">
          Event types, or patterns such as wallet.*
          <input
            required
            value={types}
            onInput={({ currentTarget }) => (types.value = currentTarget.value)}
          />
        </label>
        <label class="wide">
          Description
          <input
            value={description}
            onInput={({ currentTarget }) => (description.value = currentTarget.value)}
          />
        </label>
      </div>
      <p class="actions">
        <button type="submit" class="main" disabled={sending.isRunning.value}>
          Save
        </button>
      </p>
      <SentResult sending={sending} />
    </form>
  );
}
