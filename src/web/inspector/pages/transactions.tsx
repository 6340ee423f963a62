import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { SandboxTransactionEffect } from '../../../sandbox/generated/schemas.ts';
import { readApi } from '../api.ts';
import { control } from '../control.ts';
import { CodeBlock } from '../parts/code-block.tsx';
import { useEventFeed } from '../parts/use-event-feed.tsx';
import { everyPage, useLoaded } from '../parts/use-loaded.tsx';
import { type Column, VirtualTable } from '../parts/virtual-table.tsx';
import { goTo, route } from '../router.tsx';
import { hrefOf } from '../routes.ts';
import { dateAndTime, timeOfDay } from '../texts.ts';
import { isFailure, type KnownTransaction, knownTransactions } from '../timeline.ts';

const REREAD_MS = 2_000;

const columns: readonly Column<KnownTransaction>[] = [
  { title: 'Time', name: 'time', cell: ({ steps }) => timeOfDay(steps.at(-1)!.atMs) },
  { title: 'Transaction', name: 'operation', cell: ({ id }) => id },
  { title: 'Last change', name: 'code', cell: ({ steps }) => steps.at(-1)!.name.replaceAll('_', ' ') },
  { title: 'Chain', name: 'wallet', cell: ({ caip2 }) => caip2 },
];

/** The transactions of all wallets, which their events keep up to date, and the open transaction. */
export function Page() {
  const { events, interruption } = useEventFeed('transaction.*');
  const [opened] = route.value.path;
  const listed = useLoaded(
    (signal) => everyPage((query) => control('listSandboxTransactions', { query }, signal)),
    [],
  );
  const transactions = knownTransactions(listed.value.value ?? [], events.value);
  const error = listed.error.value || interruption.value;
  return (
    <div class={`page split ${opened === undefined ? '' : 'opened'}`}>
      <section class="list" aria-label="All transactions">
        <h1>Transactions</h1>
        <MineButton />
        {error !== '' && <p role="alert">{error}</p>}
        <VirtualTable
          label="Transactions, that of the newest event first"
          rows={transactions}
          columns={columns}
          idOf={({ id }) => id}
          opened={opened}
          open={({ id }) => goTo(hrefOf('transactions', [id]))}
          rowClass={({ steps }) => (isFailure(steps.at(-1)!.name) ? 'refused' : '')}
        />
        {transactions.length === 0 && <p class="empty">No transactions yet.</p>}
      </section>
      {opened !== undefined && (
        <TransactionDetail key={opened} id={opened} known={transactions.find(({ id }) => id === opened)} />
      )}
    </div>
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
    <p class="actions">
      <button type="button" onClick={mine}>
        Mine a block
      </button>
      <span role="status">{note.value}</span>
    </p>
  );
}

interface DetailProps {
  readonly id: string;
  readonly known: KnownTransaction | undefined;
}

function TransactionDetail({ id, known }: DetailProps) {
  const { value, error, reload } = useLoaded(
    (signal) => readApi('getTransaction', { path: { transaction_id: id } }, signal),
    [id, known?.steps.length],
  );
  const status = value.value?.status;
  const isOpen = status === 'pending' || status === 'broadcasted';
  useEffect(() => {
    // No event reports when the block of a transaction is final.
    if (status !== 'confirmed') return;
    const timer = setInterval(reload, REREAD_MS);
    return () => clearInterval(timer);
  }, [status]);
  return (
    <section class="detail" aria-label="Transaction">
      <p>
        <a class="back" href={hrefOf('transactions')}>
          Close
        </a>
      </p>
      <h2>Transaction {id}</h2>
      {error.value !== '' && <p role="alert">{error.value}</p>}
      <ol class="steps">
        {known?.steps.map(({ name, atMs }, index) => (
          <li key={index}>
            <span class={isFailure(name) ? 'bad' : 'good'}>{name.replaceAll('_', ' ')}</span> at{' '}
            {dateAndTime(atMs)} UTC
          </li>
        ))}
        {status === 'finalized' && (
          <li>
            <span class="good">finalized</span>: no reorganization can remove its block
          </li>
        )}
      </ol>
      {isOpen && <SteerButtons id={id} isEvm={value.value!.caip2.startsWith('eip155:')} />}
      {known !== undefined && known.walletId !== '' && (
        <p>
          <a href={hrefOf('wallets', [known.walletId])}>Its wallet</a>
        </p>
      )}
      {value.value !== undefined && (
        <>
          <p>Status: {value.value.status.replaceAll('_', ' ')}</p>
          <CodeBlock value={value.value} label="Transaction" />
        </>
      )}
    </section>
  );
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
    <p class="actions">
      {effects
        .filter(({ effect }) => isEvm || effect !== 'replace')
        .map((each) => (
          <button type="button" key={each.effect} onClick={() => steer(each)}>
            {each.title}
          </button>
        ))}
      <span role="status">{note.value}</span>
    </p>
  );
}
