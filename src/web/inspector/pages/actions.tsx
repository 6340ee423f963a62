import type { WalletActionResponse } from '../../../generated/schemas.ts';
import { readApi } from '../api.ts';
import { control } from '../control.ts';
import { isUnsuccessful, type KnownAction, knownActions, stepText } from '../known-actions.ts';
import { CodeBlock } from '../parts/code-block.tsx';
import { Fact } from '../parts/fact.tsx';
import { SearchableList } from '../parts/searchable-list.tsx';
import { useEventFeed } from '../parts/use-event-feed.tsx';
import { everyPage, useLoaded } from '../parts/use-loaded.tsx';
import type { Column } from '../parts/virtual-table.tsx';
import { hrefOf } from '../routes.ts';
import { timeOfDay } from '../texts.ts';

const columns: readonly Column<KnownAction>[] = [
  { title: 'Time', name: 'time', cell: ({ beganMs }) => timeOfDay(beganMs) },
  { title: 'Action', name: 'operation', cell: ({ family }) => family.replaceAll('_', ' ') },
  { title: 'Status', name: 'chain', cell: ({ status }) => status },
  { title: 'Id', name: 'wallet', cell: ({ id }) => id },
];

/** The wallet actions of all wallets, which their events keep up to date, and the steps of the open action. */
export function Page() {
  const { events, interruption } = useEventFeed('wallet_action.*');
  const listed = useLoaded(
    (signal) => everyPage((query) => control('listSandboxActions', { query }, signal)),
    [],
  );
  return (
    <SearchableList
      page="actions"
      title="Actions"
      nouns={['action', 'actions']}
      searchLabel="Family, status, id or wallet"
      rows={knownActions(listed.value.value ?? [], events.value)}
      error={listed.error.value || interruption.value}
      reload={listed.reload}
      columns={columns}
      idOf={({ id }) => id}
      textsOf={({ id, walletId, family, status }) => [id, walletId, family.replaceAll('_', ' '), status]}
      rowClass={({ status }) => (isUnsuccessful(status) ? 'refused' : '')}
      detail={(id, action) =>
        action === undefined ? (
          <p class="empty">There is no action {id}.</p>
        ) : (
          <ActionDetail key={id} action={action} />
        )
      }
    />
  );
}

function ActionDetail({ action: { id, walletId, family, changes } }: { readonly action: KnownAction }) {
  const { value, error, reload } = useLoaded(
    (signal) => {
      const path = { wallet_id: walletId, action_id: id };
      return readApi('getWalletAction', { path, query: { include: 'steps' } }, signal);
    },
    [id, changes],
  );
  return (
    <>
      <h2>{family.replaceAll('_', ' ')}</h2>
      <p class="actions">
        <button type="button" onClick={reload}>
          Read again
        </button>
      </p>
      {error.value !== '' && <p role="alert">{error.value}</p>}
      {value.value !== undefined && <ActionFacts action={value.value} />}
    </>
  );
}

function ActionFacts({ action }: { readonly action: WalletActionResponse }) {
  const { id, status, wallet_id: walletId, steps = [], failure_reason: reason } = action;
  return (
    <>
      <dl>
        <Fact name="Id">{id}</Fact>
        <Fact name="Status">
          <span class={isUnsuccessful(status) ? 'bad' : 'good'}>{status}</span>
          {reason !== undefined && `: ${reason.message}`}
        </Fact>
        <Fact name="Wallet">
          <a href={hrefOf('wallets', [walletId])}>{walletId}</a>
        </Fact>
      </dl>
      <h3>Steps</h3>
      {steps.length === 0 && <p class="empty">No steps yet.</p>}
      <ol>
        {steps.map((step, index) => (
          <li key={index} class={isUnsuccessful(step.status) ? 'bad' : ''}>
            {stepText(step)}
          </li>
        ))}
      </ol>
      <h3>As the API returns it</h3>
      <CodeBlock value={action} label="Action" />
    </>
  );
}
