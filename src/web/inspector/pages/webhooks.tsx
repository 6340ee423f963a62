import type { WebhookEndpoint } from '../../../generated/schemas.ts';
import { readApi } from '../api.ts';
import { control } from '../control.ts';
import { Delivery } from '../parts/delivery.tsx';
import { Fact } from '../parts/fact.tsx';
import { SearchableList } from '../parts/searchable-list.tsx';
import { isRefusal, SentResult, useSending } from '../parts/sent-result.tsx';
import { useLoaded } from '../parts/use-loaded.tsx';
import type { Column } from '../parts/virtual-table.tsx';
import { hrefOf } from '../routes.ts';
import { dateAndTime } from '../texts.ts';
import { allPages } from '../wallet-facts.ts';

const columns: readonly Column<WebhookEndpoint>[] = [
  { title: 'URL', name: 'operation', cell: ({ url }) => url },
  { title: 'Status', name: 'chain', cell: ({ status }) => status },
  { title: 'Id', name: 'wallet', cell: ({ id }) => id },
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
      rowClass={({ status }) => (status === 'disabled' ? 'refused' : '')}
      detail={(id) => <EndpointDetail key={id} id={id} onChanged={reload} />}
    />
  );
}

interface EndpointDetailProps {
  readonly id: string;
  readonly onChanged: () => void;
}

function EndpointDetail({ id, onChanged }: EndpointDetailProps) {
  const path = { endpoint_id: id };
  const endpoint = useLoaded((signal) => readApi('getWebhookEndpoint', { path }, signal), [id]);
  const deliveries = useLoaded(
    (signal) => readApi('listWebhookDeliveries', { path, query: { limit: 50 } }, signal),
    [id],
  );
  const sending = useSending();
  const send = async (operation: string, body: object): Promise<void> => {
    await sending.run(() => control('sendRequest', { body: { operation, path, body } }));
    endpoint.reload();
    deliveries.reload();
    const { status } = sending.result.value ?? { status: 0 };
    if (!isRefusal(status)) onChanged();
  };
  const shown = endpoint.value.value;
  return (
    <>
      {endpoint.error.value !== '' && <p role="alert">{endpoint.error.value}</p>}
      {shown !== undefined && <EndpointFacts endpoint={shown} />}
      {shown !== undefined && (
        <p class="actions">
          <button
            type="button"
            disabled={sending.isRunning.value}
            onClick={() => send('testWebhookEndpoint', {})}
          >
            Send a test
          </button>
          <button
            type="button"
            disabled={sending.isRunning.value}
            onClick={() =>
              send('updateWebhookEndpoint', { status: shown.status === 'enabled' ? 'disabled' : 'enabled' })
            }
          >
            {shown.status === 'enabled' ? 'Disable' : 'Enable'}
          </button>
          <button type="button" onClick={deliveries.reload}>
            Read deliveries again
          </button>
        </p>
      )}
      <SentResult sending={sending} />
      <section aria-label="Deliveries">
        <h3>Latest deliveries</h3>
        {deliveries.error.value !== '' && <p role="alert">{deliveries.error.value}</p>}
        {deliveries.value.value?.data.length === 0 && <p class="empty">No deliveries yet.</p>}
        {deliveries.value.value?.data.map((delivery) => (
          <Delivery key={delivery.id} delivery={delivery} onReplayed={deliveries.reload}>
            <a href={hrefOf('events', [delivery.event_id])}>{delivery.event_type}</a>
          </Delivery>
        ))}
      </section>
    </>
  );
}

function EndpointFacts({ endpoint }: { readonly endpoint: WebhookEndpoint }) {
  const { id, url, description, status, disabled_reason: reason, event_types: types } = endpoint;
  return (
    <>
      <h2>{url}</h2>
      <dl>
        <Fact name="Id">{id}</Fact>
        {description !== null && <Fact name="Description">{description}</Fact>}
        <Fact name="Status">{reason === null ? status : `${status}: ${reason}`}</Fact>
        <Fact name="Events">{types.join(', ')}</Fact>
        <Fact name="Created">{dateAndTime(endpoint.created_at)} UTC</Fact>
      </dl>
    </>
  );
}
