import { useSignal } from '@preact/signals';
import { Plus, Wallet as WalletIcon } from 'lucide';
import type { Wallet } from '../../../generated/schemas.ts';
import type { SandboxWallet } from '../../../sandbox/generated/schemas.ts';
import { readApi } from '../api.ts';
import { control } from '../control.ts';
import { inWords, shortened, usdText } from '../names.ts';
import { Copy, Named } from '../parts/copy.tsx';
import { DetailPanel } from '../parts/detail-panel.tsx';
import { Fact } from '../parts/fact.tsx';
import { Icon } from '../parts/icon.tsx';
import { JsonTree } from '../parts/json-tree.tsx';
import { Chain, Seats, Status } from '../parts/label.tsx';
import { SearchableList } from '../parts/searchable-list.tsx';
import { isRefusal, SentResult, SignerChoice, useSending, useSigners } from '../parts/sent-result.tsx';
import { Empty, Failure } from '../parts/states.tsx';
import { Age, ExactTime } from '../parts/time.tsx';
import { useEventFeed } from '../parts/use-event-feed.tsx';
import { everyPage, useLoaded, useReload } from '../parts/use-loaded.tsx';
import type { Column } from '../parts/virtual-table.tsx';
import { goTo } from '../router.tsx';
import { hrefOf } from '../routes.ts';
import { chainTypes, signExample } from '../wallet-facts.ts';
import { Amount } from '../wallets/amount.tsx';
import { Balances, Faucet } from '../wallets/balances.tsx';
import { Owner } from '../wallets/owner.tsx';
import { SendBox, type SendBoxProps } from '../wallets/send-box.tsx';

const columns: readonly Column<SandboxWallet>[] = [
  {
    ...{ title: 'Name', slot: 'lead' },
    cell: ({ name, external_id: external, archived_at_ms: archived }) => (
      <>
        {name ?? external ?? <span class="quiet">without a name</span>}{' '}
        {archived !== null && <Status of="archived" />}
      </>
    ),
  },
  {
    ...{ title: 'Address', width: 136, openedWidth: 100, slot: 'sub' },
    cell: ({ address }) => <Named id={address} what="the address" />,
  },
  {
    ...{ title: 'Chain', width: 128, openedWidth: 112, slot: 'status' },
    cell: ({ chain_type: type }) => <Chain id={type} />,
  },
  { title: 'Owner', width: 190, isExtra: true, cell: ({ owner }) => <OwnerSeats owner={owner} /> },
  {
    ...{ title: 'Policies', width: 150, isExtra: true, isDim: true },
    cell: ({ policies }) => policies.map(({ name, id }) => name || shortened(id)).join(', '),
  },
  {
    ...{ title: 'Worth', width: 124, align: 'end', slot: 'age' },
    cell: ({ worth_usd: worth }) => (worth === null ? '' : <span class="amount">{usdText(worth)}</span>),
  },
];

function OwnerSeats({ owner }: { readonly owner: SandboxWallet['owner'] }) {
  if (owner === null) return <span class="quiet">the app</span>;
  const { size, threshold, members, display_name: name } = owner;
  const names = members.map((member) => member.name ?? shortened(member.id)).join(', ');
  return (
    <span title={names}>
      {name ?? names} <Seats size={size} threshold={threshold} />
    </span>
  );
}

/** The wallets of all apps, and the open wallet. */
export function Page() {
  const { events, interruption } = useEventFeed();
  const { value, error, isLoading, reload } = useLoaded(
    (signal) => everyPage((query) => control('listSandboxWallets', { query }, signal)),
    [],
  );
  useReload({ isLoading, reload }, events.value);
  return (
    <SearchableList
      page="wallets"
      title="Wallets"
      nouns={['wallet', 'wallets']}
      searchLabel="name, id, address, chain or owner"
      rows={value.value}
      error={error.value || interruption.value}
      reload={reload}
      columns={columns}
      idOf={({ id }) => id}
      textsOf={({ id, address, chain_type, name, external_id, owner }) => [
        id,
        address,
        chain_type,
        name,
        external_id,
        ...(owner?.members.map((member) => member.name) ?? []),
      ]}
      above={<CreateWallet onCreated={reload} />}
      empty={<Empty icon={WalletIcon} title="No wallets yet" />}
      detail={(id, row, back) =>
        row === undefined || row.archived_at_ms === null ? (
          <WalletDetail key={id} id={id} row={row} back={back} change={events.value} />
        ) : (
          <ArchivedWallet key={id} row={row} back={back} onRestored={reload} />
        )
      }
    />
  );
}

function CreateWallet({ onCreated }: { readonly onCreated: () => void }) {
  const name = useSignal('');
  const type = useSignal('ethereum');
  const sending = useSending();
  const isOpen = useSignal(false);
  const create = async (submitted: Event): Promise<void> => {
    submitted.preventDefault();
    const body = {
      chain_type: type.value,
      ...(name.value.trim() === '' ? {} : { display_name: name.value.trim() }),
    };
    await sending.run(() => control('sendRequest', { body: { operation: 'createWallet', path: {}, body } }));
    onCreated();
    const sent = sending.result.value;
    if (sent === undefined || isRefusal(sent.status)) return;
    // The panel of the wallet shows what the response would.
    sending.result.value = undefined;
    name.value = '';
    isOpen.value = false;
    goTo(hrefOf('wallets', [(sent.body as { id: string }).id]));
  };
  return (
    <details
      open={isOpen}
      onToggle={({ currentTarget }) => {
        isOpen.value = currentTarget.open;
      }}
    >
      <summary>Create a wallet</summary>
      <form class="fields" onSubmit={create}>
        <label>
          Name
          <input value={name} onInput={({ currentTarget }) => (name.value = currentTarget.value)} />
        </label>
        <label>
          Chain type
          <select value={type} onChange={({ currentTarget }) => (type.value = currentTarget.value)}>
            {chainTypes.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        <button type="submit" class="main" disabled={sending.isRunning.value}>
          <Icon of={Plus} /> Create
        </button>
      </form>
      <SentResult sending={sending} />
    </details>
  );
}

interface ArchivedWalletProps {
  readonly row: SandboxWallet;
  readonly back: string;
  readonly onRestored: () => void;
}

/** An archived wallet, which the API no longer returns: the facts in the list, and a button that restores it. */
function ArchivedWallet({ row, back, onRestored }: ArchivedWalletProps) {
  const error = useSignal('');
  const restore = async (): Promise<void> => {
    try {
      await control('restoreWallet', { path: { wallet_id: row.id } });
      onRestored();
    } catch (cause) {
      error.value = (cause as Error).message;
    }
  };
  return (
    <DetailPanel
      what="Wallet"
      id={row.id}
      back={back}
      title={
        <>
          {row.name ?? row.external_id ?? 'Wallet'} <Status of="archived" />
        </>
      }
      sub={
        <>
          <Chain id={row.chain_type} /> <Named id={row.address} what="the address" />
        </>
      }
    >
      <Failure message={error.value} />
      <p>An archived wallet cannot be used, and the API answers that it does not exist.</p>
      <p class="actions">
        <button type="button" class="main" onClick={restore}>
          Restore
        </button>
      </p>
      <dl>
        <Fact name="Archived">{row.archived_at_ms !== null && <ExactTime ms={row.archived_at_ms} />}</Fact>
        <Fact name="Created">
          <ExactTime ms={row.created_at_ms} />
        </Fact>
        <Fact name="Address">
          {row.address} <Copy text={row.address} what="the address" />
        </Fact>
        <Fact name="Owner">
          <OwnerSeats owner={row.owner} />
        </Fact>
        <Fact name="Requests">
          <a href={hrefOf('requests', [], { wallet: row.id })}>of this wallet</a>
        </Fact>
      </dl>
    </DetailPanel>
  );
}

interface WalletDetailProps {
  readonly id: string;
  readonly row: SandboxWallet | undefined;
  readonly back: string;
  /** Changes with each event, which may have changed the wallet. */
  readonly change: unknown;
}

function WalletDetail({ id, row, back, change }: WalletDetailProps) {
  const { value, error, reload } = useLoaded(
    (signal) => readApi('getWallet', { path: { wallet_id: id } }, signal),
    [id],
  );
  const wallet = value.value;
  return (
    <DetailPanel
      what="Wallet"
      id={id}
      back={back}
      title={wallet?.display_name ?? wallet?.external_id ?? row?.name ?? 'Wallet'}
      sub={
        wallet !== undefined && (
          <>
            <Chain id={wallet.chain_type} /> <Named id={wallet.address} what="the address" />
          </>
        )
      }
      error={error.value}
      isLoading={wallet === undefined}
      retry={reload}
      tabs={
        wallet === undefined
          ? []
          : [
              { title: 'Overview', content: () => <WalletFacts wallet={wallet} row={row} change={change} /> },
              { title: 'Send', content: () => <SendBox wallet={wallet} owner={row?.owner} /> },
              { title: 'Sign', content: () => <SignBox wallet={wallet} owner={row?.owner} /> },
              { title: 'Actions', content: () => <Actions wallet={wallet} change={change} /> },
              { title: 'Raw', content: () => <JsonTree value={wallet} label="Wallet" /> },
            ]
      }
    />
  );
}

interface WalletFactsProps {
  readonly wallet: Wallet;
  readonly row: SandboxWallet | undefined;
  readonly change: unknown;
}

function WalletFacts({ wallet, row, change }: WalletFactsProps) {
  const round = useSignal(0);
  return (
    <>
      <Balances wallet={wallet} round={round.value} change={change} />
      <Faucet
        wallet={wallet}
        onFunded={() => {
          round.value += 1;
        }}
      />
      <Owner wallet={wallet} members={row?.owner?.members ?? []} />
      <h3>Facts</h3>
      <dl>
        <Fact name="Address">
          {wallet.address} <Copy text={wallet.address} what="the address" />
        </Fact>
        {wallet.external_id !== undefined && <Fact name="External id">{wallet.external_id}</Fact>}
        <Fact name="Created">
          <ExactTime ms={wallet.created_at} />
        </Fact>
        <Fact name="Policies">
          {wallet.policy_ids.length === 0
            ? 'none'
            : wallet.policy_ids.map((id) => (
                <Named key={id} id={id} what="the policy's id" href={hrefOf('policies', [id])}>
                  {row?.policies.find((policy) => policy.id === id)?.name}
                </Named>
              ))}
        </Fact>
        <Fact name="Requests">
          <a href={hrefOf('requests', [], { wallet: wallet.id })}>of this wallet</a>
        </Fact>
      </dl>
    </>
  );
}

function SignBox({ wallet, owner }: SendBoxProps) {
  const sending = useSending();
  const chosen = useSigners(owner);
  const text = useSignal(JSON.stringify(signExample(wallet.chain_type), null, 2));
  const send = (event: Event): void => {
    event.preventDefault();
    const { operation, ...example } = signExample(wallet.chain_type);
    void sending.run(async () => {
      const { operation: named = operation, body = example.body } = JSON.parse(text.value);
      return control('sendRequest', {
        body: { operation: named, path: { wallet_id: wallet.id }, body, sign_as: [...chosen.value] },
      });
    });
  };
  return (
    <section aria-label="Sign">
      <h3>Sign</h3>
      <form onSubmit={send}>
        <label class="stack">
          Operation and body
          <textarea
            rows={9}
            spellcheck={false}
            value={text}
            onInput={({ currentTarget }) => {
              text.value = currentTarget.value;
            }}
          />
        </label>
        <SignerChoice chosen={chosen} owner={owner} />
        <button type="submit" class="main" disabled={sending.isRunning.value}>
          Send
        </button>
      </form>
      <SentResult sending={sending} />
    </section>
  );
}

function Actions({ wallet, change }: { readonly wallet: Wallet; readonly change: unknown }) {
  const { value, error, isLoading, reload } = useLoaded(
    (signal) =>
      readApi('listWalletActions', { path: { wallet_id: wallet.id }, query: { limit: 50 } }, signal),
    [wallet.id],
  );
  useReload({ isLoading, reload }, change);
  return (
    <section aria-label="Actions">
      <Failure message={error.value} />
      {value.value?.data.length === 0 && <p class="empty">No transfers, swaps, deposits or payouts yet.</p>}
      <ul class="lines">
        {value.value?.data.map((action) => (
          <li key={action.id}>
            <div>
              <a href={hrefOf('actions', [action.id])}>{inWords(action.type)}</a>{' '}
              {action.type === 'transfer' && action.source_amount !== undefined && (
                <Amount of={action.source_amount} asset={action.source_asset} />
              )}{' '}
              <Status of={action.status} />
              <span class="when">
                <Age ms={Date.parse(action.created_at)} />
              </span>
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}
