import { ListChecks } from 'lucide';
import { decimalText, fromRaw } from '../../../engine/assets/decimal.ts';
import { assetAtAddress } from '../../../engine/assets/known-assets.ts';
import { chainOfCaip2 } from '../../../engine/assets/known-chains.ts';
import type {
  SwapActionResponse,
  WalletActionResponse,
  WalletActionStep,
} from '../../../generated/schemas.ts';
import type { SandboxAction } from '../../../sandbox/generated/schemas.ts';
import { readApi } from '../api.ts';
import { control } from '../control.ts';
import { inWords, shortened, toneOf } from '../names.ts';
import { Named } from '../parts/copy.tsx';
import { DetailPanel } from '../parts/detail-panel.tsx';
import { Fact } from '../parts/fact.tsx';
import { JsonTree } from '../parts/json-tree.tsx';
import { Chain, Status } from '../parts/label.tsx';
import { PoolTrades } from '../parts/pool-curve.tsx';
import { SearchableList } from '../parts/searchable-list.tsx';
import { Empty } from '../parts/states.tsx';
import { Age, ExactTime } from '../parts/time.tsx';
import { Timeline } from '../parts/timeline.tsx';
import { useEventFeed } from '../parts/use-event-feed.tsx';
import { everyPage, useLoaded, useReload } from '../parts/use-loaded.tsx';
import type { Column } from '../parts/virtual-table.tsx';
import { hrefOf } from '../routes.ts';
import { Address } from '../wallets/address.tsx';
import { Amount } from '../wallets/amount.tsx';

const columns: readonly Column<SandboxAction>[] = [
  { title: 'Action', slot: 'lead', cell: (action) => <What action={action} /> },
  {
    ...{ title: 'From and to', width: 240, openedWidth: 104, slot: 'sub' },
    cell: ({ wallet_id: id, wallet_name: name, to }) => (
      <>
        <a href={hrefOf('wallets', [id])}>{name ?? shortened(id)}</a>
        {to !== null && (
          <>
            <span class="arrow">→</span>
            <Address of={to} what="the receiver" />
          </>
        )}
      </>
    ),
  },
  {
    ...{ title: 'Chain', width: 116, isExtra: true },
    cell: ({ chain }) => chain !== null && <Chain id={chain} />,
  },
  { title: 'Steps', width: 96, isExtra: true, cell: ({ steps }) => <StepsBar steps={steps} /> },
  {
    ...{ title: 'Status', width: 124, openedWidth: 112, slot: 'status' },
    cell: ({ status }) => <Status of={status} />,
  },
  {
    ...{ title: 'Age', width: 80, align: 'end', isDim: true, slot: 'age' },
    cell: ({ created_at_ms: ms }) => <Age ms={ms} />,
  },
];

/** The kind of an action with its amount. */
function What({ action: { type, amount, asset } }: { readonly action: SandboxAction }) {
  return (
    <span class="deed">
      <span>{inWords(type)}</span> {amount !== null && <Amount of={amount} asset={asset} />}
    </span>
  );
}

/** What a swap has received, once that is known. */
function Received({ action }: { readonly action: WalletActionResponse }) {
  if (action.type !== 'swap' || action.output_amount === null) return null;
  const chain = chainOfCaip2(action.destination_caip2 ?? action.caip2);
  const known =
    chain === undefined
      ? undefined
      : action.output_token === 'native'
        ? chain.native
        : assetAtAddress(chain, action.output_token);
  if (known === undefined) return null;
  return (
    <span class="whole">
      {' '}
      → <Amount of={decimalText(fromRaw(BigInt(action.output_amount), known.decimals))} asset={known.asset} />
    </span>
  );
}

/** The progress of an action: a bar for each step, in the color of its status. */
function StepsBar({ steps }: Pick<SandboxAction, 'steps'>) {
  const text = steps.map(({ type, status }) => `${inWords(type)}: ${status}`).join(', ');
  return (
    <span class="steps-bar" role="img" aria-label={text === '' ? 'no steps' : text} title={text}>
      {steps.map(({ status }, index) => (
        <i key={index} class={toneOf(status)} />
      ))}
    </span>
  );
}

/** The wallet actions of all wallets, which their events keep up to date, and the steps of the open action. */
export function Page() {
  const { events, interruption } = useEventFeed('wallet_action.*');
  const { value, error, isLoading, reload } = useLoaded(
    (signal) => everyPage((query) => control('listSandboxActions', { query }, signal)),
    [],
  );
  useReload({ isLoading, reload }, events.value);
  return (
    <SearchableList
      page="actions"
      title="Actions"
      nouns={['action', 'actions']}
      searchLabel="kind, status, id or wallet"
      rows={value.value}
      error={error.value || interruption.value}
      reload={reload}
      columns={columns}
      idOf={({ id }) => id}
      textsOf={({ id, wallet_id, wallet_name, type, status, to, asset }) => [
        ...[id, wallet_id, wallet_name, inWords(type), status, to, asset],
      ]}
      empty={
        <Empty icon={ListChecks} title="No actions yet">
          <span>Transfers, swaps, deposits into vaults and payouts appear here with their steps.</span>
        </Empty>
      }
      detail={(id, action, back) => <ActionDetail key={id} id={id} action={action} back={back} />}
    />
  );
}

interface DetailProps {
  readonly id: string;
  readonly action: SandboxAction | undefined;
  readonly back: string;
}

function ActionDetail({ id, action, back }: DetailProps) {
  const { value, error, reload } = useLoaded<WalletActionResponse | undefined>(
    async (signal) => {
      if (action === undefined) return undefined;
      const path = { wallet_id: action.wallet_id, action_id: id };
      return readApi('getWalletAction', { path, query: { include: 'steps' } }, signal);
    },
    [id, action?.status],
  );
  if (action === undefined) {
    return <DetailPanel what="Action" id={id} back={back} title="Action" isLoading />;
  }
  const whole = value.value;
  return (
    <DetailPanel
      what="Action"
      id={id}
      back={back}
      title={
        <>
          <What action={action} />
          {whole !== undefined && <Received action={whole} />} <Status of={action.status} />
        </>
      }
      error={error.value}
      retry={reload}
      tabs={[
        { title: 'Overview', content: () => <ActionFacts action={action} whole={whole} /> },
        { title: 'Raw', content: () => <JsonTree value={whole ?? action} label="Action" /> },
      ]}
    />
  );
}

interface FactsProps {
  readonly action: SandboxAction;
  readonly whole: WalletActionResponse | undefined;
}

function ActionFacts({ action, whole }: FactsProps) {
  const steps = whole?.steps ?? [];
  return (
    <>
      {whole?.failure_reason !== undefined && (
        <section class="note bad" aria-label="Why it failed">
          {whole.failure_reason.message}
        </section>
      )}
      <h3>Steps</h3>
      {steps.length === 0 && <p class="empty">No steps yet.</p>}
      <Timeline label="Steps" steps={steps.map(shownStep)} />
      {whole?.type === 'swap' && whole.status === 'succeeded' && <Rate action={whole} />}
      <dl>
        <Fact name="Wallet">
          <Named id={action.wallet_id} what="the wallet's id" href={hrefOf('wallets', [action.wallet_id])}>
            {action.wallet_name ?? undefined}
          </Named>
        </Fact>
        {action.to !== null && (
          <Fact name="To">
            <Address of={action.to} what="the receiver" />
          </Fact>
        )}
        {action.request_id !== null && (
          <Fact name="Request">
            <a href={hrefOf('requests', [action.request_id])}>the request that caused it</a>
          </Fact>
        )}
        <Fact name="Started">
          <ExactTime ms={action.created_at_ms} />
        </Fact>
        {action.ended_at_ms !== null && (
          <Fact name="Ended">
            <ExactTime ms={action.ended_at_ms} />
          </Fact>
        )}
      </dl>
    </>
  );
}

/** How a swap was priced: the curves of the pools in which it traded, or the fixed price of the exchange. */
function Rate({ action }: { readonly action: SwapActionResponse }) {
  const steps = action.steps ?? [];
  if (steps.some(({ type }) => type === 'external_transaction')) {
    return (
      <p class="quiet">
        The exchange swapped it at its own price, which is the same for every amount. It has no pool.
      </p>
    );
  }
  const hash = hashOf(steps.at(-1) ?? {});
  return hash === undefined ? null : <PoolTrades caip2={action.caip2} hash={hash} />;
}

/** Returns the hash of a step's transaction, or of the bundle with its user operation. */
function hashOf(step: object): string | undefined {
  const values = step as Readonly<Record<string, unknown>>;
  const hash =
    values.transaction_hash ??
    values.transaction_signature ??
    values.transaction_id ??
    values.bundle_transaction_hash;
  return typeof hash === 'string' ? hash : undefined;
}

/** Returns the kind of a step in words, such as `EVM transaction`. */
function stepText(type: string): string {
  const [machine = '', ...rest] = type.split('_');
  return ['evm', 'svm', 'tvm'].includes(machine) ? [machine.toUpperCase(), ...rest].join(' ') : inWords(type);
}

/** Returns what the timeline shows of a step: what it does and where, its hash, and why it failed. */
function shownStep(step: WalletActionStep) {
  const values = step as Readonly<Record<string, unknown>>;
  const place = values.caip2 ?? values.custodian;
  const hash = hashOf(step);
  return {
    title: (
      <>
        {stepText(step.type)} {typeof place === 'string' && <Chain id={place} />} <Status of={step.status} />
      </>
    ),
    tone: toneOf(step.status),
    note: (
      <>
        {hash !== undefined && <Named id={hash} what="the hash" href={hrefOf('transactions', [hash])} />}
        {step.failure_reason !== undefined && <span class="bad">{step.failure_reason.message}</span>}
      </>
    ),
  };
}
