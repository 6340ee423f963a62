import { useSignal } from '@preact/signals';
import { ArrowLeftRight, Pickaxe } from 'lucide';
import { useEffect } from 'preact/hooks';
import type {
  SandboxChain,
  SandboxTransaction,
  SandboxTransactionEffect,
} from '../../../sandbox/generated/schemas.ts';
import { readApi } from '../api.ts';
import { clock } from '../clock-feed.ts';
import { control } from '../control.ts';
import { inWords, shortened, toneOf } from '../names.ts';
import { Named } from '../parts/copy.tsx';
import { DetailPanel } from '../parts/detail-panel.tsx';
import { Fact } from '../parts/fact.tsx';
import { Icon } from '../parts/icon.tsx';
import { JsonTree } from '../parts/json-tree.tsx';
import { Chain, Status } from '../parts/label.tsx';
import { SearchableList } from '../parts/searchable-list.tsx';
import { Empty, Failure, Skeleton } from '../parts/states.tsx';
import type { Tab } from '../parts/tabs.tsx';
import { Age } from '../parts/time.tsx';
import { Timeline } from '../parts/timeline.tsx';
import { useEventFeed } from '../parts/use-event-feed.tsx';
import { everyPage, useLoaded, useReload } from '../parts/use-loaded.tsx';
import type { Column } from '../parts/virtual-table.tsx';
import { hrefOf } from '../routes.ts';
import { finalityText, stepsOf, type TransactionStep } from '../transaction-steps.ts';
import { Address } from '../wallets/address.tsx';
import { Amount } from '../wallets/amount.tsx';

const REREAD_MS = 2_000;
const RELIST_MS = 10_000;

const columns: readonly Column<SandboxTransaction>[] = [
  { title: 'What', slot: 'lead', cell: (row) => <What row={row} /> },
  {
    ...{ title: 'From and to', width: 250, openedWidth: 104, slot: 'sub' },
    cell: (row) => <FromTo row={row} />,
  },
  { title: 'Chain', width: 116, isExtra: true, cell: ({ caip2 }) => <Chain id={caip2} /> },
  {
    ...{ title: 'Status', width: 124, openedWidth: 112, slot: 'status' },
    cell: ({ status }) => <Status of={status} />,
  },
  {
    ...{ title: 'Fee', width: 170, align: 'end', isExtra: true, isDim: true },
    cell: ({ fee, is_sponsored: isSponsored }) =>
      isSponsored ? 'sponsored' : fee === null ? '' : `${fee.amount} ${fee.asset.toUpperCase()}`,
  },
  {
    ...{ title: 'Age', width: 80, align: 'end', isDim: true, slot: 'age' },
    cell: ({ created_at_ms: ms }) => <Age ms={ms} />,
  },
];

/** What a transaction does: the amount that it transfers, or the function that it calls. */
function What({ row: { method, transfer, call } }: { readonly row: SandboxTransaction }) {
  if (transfer !== null) {
    return (
      <span class="deed">
        <span>{inWords(method)}</span> <Amount of={transfer.amount} asset={transfer.asset} />
      </span>
    );
  }
  return <>{call === null ? inWords(method) : call.function}</>;
}

function FromTo({ row }: { readonly row: SandboxTransaction }) {
  const { wallet_id: wallet, wallet_name: name, sender, transfer, call } = row;
  const to = transfer?.to ?? call?.contract;
  return (
    <>
      <a href={hrefOf('wallets', [wallet])} title={sender}>
        {name ?? shortened(sender)}
      </a>
      {to !== undefined && (
        <>
          <span class="arrow">→</span>
          <Address of={to} what="the receiver" />
        </>
      )}
    </>
  );
}

/** The transactions of all wallets, which their events keep up to date, and the open transaction. */
export function Page() {
  const { events, interruption } = useEventFeed('transaction.*');
  const { value, error, isLoading, reload } = useLoaded(
    (signal) => everyPage((query) => control('listSandboxTransactions', { query }, signal)),
    [],
  );
  useReload({ isLoading, reload }, events.value);
  // No event reports that a block is final, so the list is read again as the sandbox's clock goes on.
  const isAwaited = value.value?.some(({ status }) => status === 'confirmed') ?? false;
  useReload({ isLoading, reload }, isAwaited ? Math.floor((clock.value?.now_ms ?? 0) / RELIST_MS) : 0);
  return (
    <SearchableList
      page="transactions"
      title="Transactions"
      nouns={['transaction', 'transactions']}
      searchLabel="hash, wallet, receiver, asset, chain or status"
      rows={value.value}
      error={error.value || interruption.value}
      reload={reload}
      columns={columns}
      idOf={({ id }) => id}
      textsOf={({ id, transaction_hash, wallet_id, wallet_name, caip2, chain, status, transfer, method }) => [
        id,
        transaction_hash,
        wallet_id,
        wallet_name,
        caip2,
        chain,
        status,
        method,
        transfer?.to,
        transfer?.asset,
      ]}
      actions={<MineButton />}
      empty={
        <Empty icon={ArrowLeftRight} title="No transactions yet">
          <span>Fund a wallet and send from it: the transaction appears here as it goes.</span>
          <a class="button" href={hrefOf('wallets')}>
            Choose a wallet
          </a>
        </Empty>
      }
      detail={(named, listed, back) => {
        // A link may name the transaction by its hash, which only the list can find.
        if (value.value === undefined && error.value === '') {
          return <DetailPanel what="Transaction" id={named} back={back} title="Transaction" isLoading />;
        }
        const row = listed ?? value.value?.find(({ transaction_hash: hash }) => hash === named);
        const id = row?.id ?? named;
        return (
          <TransactionDetail
            key={id}
            id={id}
            row={row}
            back={back}
            steps={stepsOf(id, events.value)}
            onChanged={reload}
          />
        );
      }}
    />
  );
}

function MineButton() {
  const note = useSignal('');
  const mine = async (): Promise<void> => {
    try {
      const { data } = await control('mineBlocks', { body: {} });
      note.value = data.length === 0 ? 'no chain is in use' : `block mined on ${data.length} chains`;
    } catch (error) {
      note.value = (error as Error).message;
    }
  };
  return (
    <>
      <span role="status" class="quiet small">
        {note.value}
      </span>
      <button type="button" onClick={mine}>
        <Icon of={Pickaxe} /> Mine a block
      </button>
    </>
  );
}

interface DetailProps {
  readonly id: string;
  readonly row: SandboxTransaction | undefined;
  readonly back: string;
  readonly steps: readonly TransactionStep[];
  /** Called when the transaction is no longer what the list shows. */
  readonly onChanged: () => void;
}

function TransactionDetail({ id, row, back, steps, onChanged }: DetailProps) {
  const { value, error, reload } = useLoaded(
    (signal) => readApi('getTransaction', { path: { transaction_id: id } }, signal),
    [id, steps.length],
  );
  const status = value.value?.status ?? row?.status ?? '';
  const chains = useLoaded(
    async (signal) =>
      status === 'confirmed'
        ? (await control('listChains', {}, signal)).data
        : ([] as readonly SandboxChain[]),
    [status],
  );
  useEffect(() => {
    if (value.value !== undefined && row !== undefined && value.value.status !== row.status) onChanged();
  }, [value.value?.status]);
  const chain = chains.value.value?.find(({ caip2 }) => caip2 === row?.caip2);
  useEffect(() => {
    // No event reports when the block of a transaction is final.
    if (status !== 'confirmed') return;
    const timer = setInterval(() => {
      reload();
      chains.reload();
    }, REREAD_MS);
    return () => clearInterval(timer);
  }, [status]);
  const tabs: readonly Tab[] = [
    {
      title: 'Overview',
      content: () => (
        <>
          {(status === 'pending' || status === 'broadcasted') && (
            <SteerButtons id={id} isEvm={row?.caip2.startsWith('eip155:') ?? true} />
          )}
          <Timeline
            label="Progress"
            steps={shownSteps(steps, row, { status, finality: finalityText(row?.block_number, chain) })}
          />
          {row !== undefined && <Facts row={row} />}
        </>
      ),
    },
    { title: 'Movements', content: () => <Movements id={id} status={status} /> },
    {
      title: 'Raw',
      content: () => <JsonTree value={value.value ?? row ?? {}} label="Transaction" />,
    },
  ];
  return (
    <DetailPanel
      what="Transaction"
      id={id}
      back={back}
      title={
        <>
          {row === undefined ? 'Transaction' : <What row={row} />} {status !== '' && <Status of={status} />}
        </>
      }
      sub={row === undefined ? undefined : <Chain id={row.caip2} />}
      error={error.value}
      tabs={tabs}
    />
  );
}

function Facts({ row }: { readonly row: SandboxTransaction }) {
  const { transfer, call, fee, transaction_hash: hash } = row;
  return (
    <>
      {row.failure_reason !== null && <div class="note bad">{row.failure_reason}</div>}
      <dl>
        <Fact name="From">
          <Named id={row.sender} what="the sender" href={hrefOf('wallets', [row.wallet_id])}>
            {row.wallet_name ?? undefined}
          </Named>
        </Fact>
        {transfer !== null && (
          <Fact name="To">
            <Address of={transfer.to} what="the receiver" />
          </Fact>
        )}
        {call !== null && (
          <Fact name="Calls">
            {call.function} of <Named id={call.contract} what="the contract" />
          </Fact>
        )}
        {fee !== null && (
          <Fact name="Fee">
            {fee.amount} {fee.asset.toUpperCase()} {row.is_sponsored && '(sponsored)'}
          </Fact>
        )}
        {hash !== null && (
          <Fact name="Hash">
            <Named id={hash} what="the hash" />
          </Fact>
        )}
        {row.block_number !== null && <Fact name="Block">{row.block_number}</Fact>}
        {row.request_id !== null && (
          <Fact name="Request">
            <a href={hrefOf('requests', [row.request_id])}>the request that caused it</a>
          </Fact>
        )}
        {row.wallet_action_id !== null && (
          <Fact name="Action">
            <a href={hrefOf('actions', [row.wallet_action_id])}>the action that it belongs to</a>
          </Fact>
        )}
        {row.is_sponsored && fee === null && <Fact name="Fee">sponsored</Fact>}
      </dl>
    </>
  );
}

/** What the transaction moved, with its events. */
function Movements({ id, status }: { readonly id: string; readonly status: string }) {
  const { value, error } = useLoaded(
    (signal) => control('getSandboxTransaction', { path: { transaction_id: id } }, signal),
    [id, status],
  );
  const details = value.value;
  if (details === undefined) {
    return error.value === '' ? <Skeleton lines={4} /> : <Failure message={error.value} />;
  }
  return (
    <>
      {details.movements.length === 0 && <p class="empty">Nothing was moved.</p>}
      <ul class="lines">
        {details.movements.map(({ from, to, asset, amount }, index) => (
          <li key={index}>
            <Amount of={amount} asset={asset} /> <Address of={from} what="the sender" />{' '}
            <span class="arrow">→</span>
            <Address of={to} what="the receiver" />
          </li>
        ))}
      </ul>
      {details.events.length > 0 && <h3>Events</h3>}
      <ul class="lines">
        {details.events.map(({ id: eventId, type, created_at_ms: ms }) => (
          <li key={eventId}>
            <a href={hrefOf('events', [eventId])}>{type}</a>
            <span class="when">
              <Age ms={ms} />
            </span>
          </li>
        ))}
      </ul>
      {details.logs.length > 0 && (
        <>
          <h3>Logs of the chain</h3>
          <JsonTree value={details.logs} label="Logs" />
        </>
      )}
    </>
  );
}

/** Returns the steps that the events report, or else the status, and the final step, which no event reports. */
function shownSteps(
  steps: readonly TransactionStep[],
  row: SandboxTransaction | undefined,
  { status, finality }: { readonly status: string; readonly finality: string },
) {
  const known = steps.map(({ name, atMs }) => ({ title: inWords(name), tone: toneOf(name), atMs }));
  const first =
    known.length === 0 && row !== undefined
      ? [{ title: inWords(row.status), tone: toneOf(row.status), atMs: row.created_at_ms }]
      : known;
  if (status === 'finalized') {
    return [
      ...first,
      { title: 'Finalized', tone: 'good' as const, note: 'No reorganization can remove its block.' },
    ];
  }
  return status === 'confirmed'
    ? [...first, { title: 'Finalized', tone: 'next' as const, note: finality }]
    : first;
}

const effects: readonly {
  readonly effect: SandboxTransactionEffect;
  readonly title: string;
  readonly note: string;
}[] = [
  { effect: 'drop', title: 'Drop', note: 'the pool has lost it; the server broadcasts it again' },
  { effect: 'replace', title: 'Replace', note: 'another transaction uses its nonce with the next block' },
  { effect: 'revert', title: 'Revert', note: 'it reverts in its block' },
];

function SteerButtons({ id, isEvm }: { readonly id: string; readonly isEvm: boolean }) {
  const note = useSignal('');
  const steer = async ({ effect, note: done }: (typeof effects)[number]): Promise<void> => {
    try {
      await control('steerTransaction', { path: { transaction_id: id }, body: { effect } });
      note.value = done;
    } catch (error) {
      note.value = (error as Error).message;
    }
  };
  return (
    <div class="actions">
      {effects
        .filter(({ effect }) => isEvm || effect !== 'replace')
        .map((each) => (
          <button type="button" key={each.effect} onClick={() => steer(each)}>
            {each.title}
          </button>
        ))}
      <span role="status">{note.value}</span>
    </div>
  );
}
