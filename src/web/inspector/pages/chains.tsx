import { useSignal } from '@preact/signals';
import { Link, Upload } from 'lucide';
import type { ChainLog, ChainTransaction, SandboxChain } from '../../../sandbox/generated/schemas.ts';
import { control } from '../control.ts';
import { Copy, Named } from '../parts/copy.tsx';
import { DecodedItem } from '../parts/decoded-item.tsx';
import { DetailPanel } from '../parts/detail-panel.tsx';
import { Fact } from '../parts/fact.tsx';
import { Icon } from '../parts/icon.tsx';
import { JsonTree } from '../parts/json-tree.tsx';
import { Status } from '../parts/label.tsx';
import { PoolCurve, PoolTrades } from '../parts/pool-curve.tsx';
import { Empty, Failure } from '../parts/states.tsx';
import { Age, ExactTime } from '../parts/time.tsx';
import { useLoaded } from '../parts/use-loaded.tsx';
import { type Column, VirtualTable } from '../parts/virtual-table.tsx';
import { goTo, route } from '../router.tsx';
import { hrefOf } from '../routes.ts';
import { shortAddress } from '../texts.ts';
import { Address } from '../wallets/address.tsx';
import { Amount } from '../wallets/amount.tsx';

const columns: readonly Column<ChainTransaction>[] = [
  { title: 'What', slot: 'lead', cell: (transaction) => whatOf(transaction) },
  {
    ...{ title: 'From and to', width: 260, slot: 'sub' },
    cell: ({ from, to, contract_address: made }) => (
      <>
        <Address of={from} what="the sender" /> <span class="arrow">→</span>{' '}
        {(to ?? made) !== null && <Address of={(to ?? made)!} what="the receiver" />}
      </>
    ),
  },
  {
    ...{ title: 'Status', width: 110, slot: 'status' },
    cell: ({ reason }) => <Status of={reason === null ? 'succeeded' : 'reverted'} />,
  },
  { title: 'Block', width: 96, align: 'end', isExtra: true, cell: ({ block_number: block }) => block },
  {
    ...{ title: 'Age', width: 90, align: 'end', isDim: true, slot: 'age' },
    cell: ({ block_at_ms: ms }) => <Age ms={ms} />,
  },
];

/**
 * The transactions in blocks of the EVM and Solana chains, from wallets and from any other sender, decoded with known
 * interfaces.
 */
export function Page() {
  const [named, hash] = route.value.path;
  const chains = useLoaded((signal) => control('listChains', {}, signal), []);
  const listed = chains.value.value?.data.filter(({ caip2 }) => /^(eip155|solana):/.test(caip2)) ?? [];
  const chain = listed.find(({ caip2 }) => caip2 === named) ?? listed[0];
  const caip2 = chain?.caip2;
  const { value, error, reload } = useLoaded(
    async (signal) =>
      caip2 === undefined
        ? []
        : (await control('listChainTransactions', { path: { chain: caip2 }, query: { limit: 1000 } }, signal))
            .data,
    [caip2],
  );
  const rows = value.value ?? [];
  const opened = rows.find((row) => row.hash === hash);
  const readAgain = () => {
    chains.reload();
    reload();
  };
  return (
    <div class={`page split long ${opened === undefined ? '' : 'opened'}`}>
      <section class="list" aria-label="Chains">
        <div class="title">
          <h1>Chains</h1>
        </div>
        {[chains.error.value, error.value]
          .filter((message) => message !== '')
          .map((message) => (
            <Failure key={message} message={message} retry={readAgain} />
          ))}
        {chain === undefined ? (
          chains.value.value !== undefined && (
            <Empty icon={Link} title="No EVM or Solana chain is in use yet">
              <span>Fund a wallet, or send a request to a chain's JSON-RPC.</span>
            </Empty>
          )
        ) : (
          <ChainBar chain={chain} listed={listed} readAgain={readAgain} />
        )}
        {rows.length > 0 && (
          <VirtualTable
            label="Transactions, the newest first"
            rows={rows}
            columns={columns}
            idOf={({ hash: id }) => id}
            opened={hash}
            open={({ hash: id }) => goTo(hrefOf('chains', [caip2!, id]))}
            rowClass={({ reason }) => (reason === null ? '' : 'refused')}
          />
        )}
        {chain !== undefined && value.value?.length === 0 && (
          <Empty icon={Link} title="No transactions on this chain yet" />
        )}
        {chain?.is_evm === true && <Pools key={caip2} caip2={chain.caip2} block={chain.block_number} />}
        <Interfaces changed={reload} />
      </section>
      {opened !== undefined && <TransactionDetail caip2={caip2!} transaction={opened} />}
    </div>
  );
}

/** The pools of the chain's swap router, and the curve of one. */
function Pools({ caip2, block }: { readonly caip2: string; readonly block: number }) {
  const { value, error, reload } = useLoaded(
    (signal) => control('listPools', { query: { chain: caip2 } }, signal),
    [caip2, block],
  );
  const chosen = useSignal('');
  const pools = value.value?.data ?? [];
  const pool = pools.find(({ address }) => address === chosen.value) ?? pools[0];
  return (
    <>
      <h2>Pools</h2>
      <p class="quiet">
        Swaps on this chain trade with these pools, which keep the product of both reserves constant.
      </p>
      <Failure message={error.value} retry={reload} />
      {pool === undefined && value.value !== undefined && <p class="empty">This chain has no pools.</p>}
      {pool !== undefined && (
        <>
          <div class="fields">
            <label>
              Pool
              <select
                value={pool.address}
                onChange={({ currentTarget }) => {
                  chosen.value = currentTarget.value;
                }}
              >
                {pools.map(({ address, assets }) => (
                  <option key={address} value={address}>
                    {assets
                      .map(({ symbol, token_address: token }) => symbol ?? shortAddress(token))
                      .join(' and ')}
                  </option>
                ))}
              </select>
            </label>
            <div>
              <Named id={pool.address} what="the pool's address" />
            </div>
          </div>
          <PoolCurve pool={pool} />
        </>
      )}
    </>
  );
}

interface BarProps {
  readonly chain: SandboxChain;
  readonly listed: readonly SandboxChain[];
  readonly readAgain: () => void;
}

function ChainBar({ chain, listed, readAgain }: BarProps) {
  return (
    <div class="fields">
      <label>
        Chain
        <select
          value={chain.caip2}
          onChange={({ currentTarget }) => goTo(hrefOf('chains', [currentTarget.value]))}
        >
          {listed.map(({ caip2, name }) => (
            <option key={caip2} value={caip2}>
              {name ?? caip2}
            </option>
          ))}
        </select>
      </label>
      <button type="button" onClick={readAgain}>
        Refresh
      </button>
      <div>
        Block {chain.block_number} · JSON-RPC <code>/_sandbox/rpc/{chain.name ?? chain.caip2}</code>{' '}
        <Copy text={`${location.origin}/_sandbox/rpc/${chain.name ?? chain.caip2}`} what="the URL" />
      </div>
    </div>
  );
}

interface DetailProps {
  readonly caip2: string;
  readonly transaction: ChainTransaction;
}

function TransactionDetail({ caip2, transaction }: DetailProps) {
  const { hash, reason } = transaction;
  return (
    <DetailPanel
      what="Transaction"
      id={hash}
      back={hrefOf('chains', [caip2])}
      title={
        <>
          {whatOf(transaction)} <Status of={reason === null ? 'succeeded' : 'reverted'} />
        </>
      }
      tabs={[
        { title: 'Overview', content: () => <TransactionFacts caip2={caip2} transaction={transaction} /> },
        { title: 'Raw', content: () => <JsonTree value={transaction} label="Transaction" /> },
      ]}
    />
  );
}

function TransactionFacts({ caip2, transaction }: DetailProps) {
  const { hash, from, to, contract_address: made, reason, call, logs, movements } = transaction;
  return (
    <>
      {reason !== null && <div class="note bad">{reason}</div>}
      <dl>
        <Fact name="Time">
          <ExactTime ms={transaction.block_at_ms} />, block {transaction.block_number}
        </Fact>
        <Fact name="Hash">
          <Named id={hash} what="the hash" />
        </Fact>
        <Fact name="From">
          <Address of={from} what="the sender" />
        </Fact>
        {to !== null && (
          <Fact name="To">
            <Address of={to} what="the receiver" />
          </Fact>
        )}
        {made !== null && (
          <Fact name="New contract">
            <Named id={made} what="the contract" />
          </Fact>
        )}
        {transaction.value !== '0' && <Fact name="Value">{transaction.value}</Fact>}
        <Fact name="Gas">{transaction.gas_used}</Fact>
      </dl>
      {movements.length > 0 && (
        <ul class="lines">
          {movements.map(({ from: sender, to: recipient, asset, amount }, index) => (
            <li key={index}>
              <Amount of={amount} asset={asset} /> <Address of={sender} what="the sender" />{' '}
              <span class="arrow">→</span>
              <Address of={recipient} what="the receiver" />
            </li>
          ))}
        </ul>
      )}
      {logs.length > 0 && <PoolTrades caip2={caip2} hash={hash} />}
      {call !== null && <DecodedItem title={`Call of ${call.name}`} item={call} />}
      {logs.map((log, index) => (
        <Log key={index} log={log} />
      ))}
      {transaction.log_messages.length > 0 && (
        <JsonTree value={transaction.log_messages} label="Log messages" />
      )}
    </>
  );
}

function Log({ log }: { readonly log: ChainLog }) {
  const { address, event, topics, data } = log;
  if (event !== null) return <DecodedItem title={`${event.name} of ${shortAddress(address)}`} item={event} />;
  return (
    <>
      <h3>Event of {shortAddress(address)}</h3>
      <p>No uploaded interface has it.</p>
      <JsonTree value={{ topics, data }} label="Event" />
    </>
  );
}

/** Describes the transaction in a few words. */
function whatOf({
  is_deposit: isDeposit,
  call,
  to,
  logs,
  data,
  contract_address: made,
}: ChainTransaction): string {
  if (isDeposit) return 'deposit';
  if (call !== null) return call.name;
  if (to === null) return made === null ? 'failed creation' : 'new contract';
  if (data !== '0x') return data.slice(0, 10);
  return logs.length === 0 ? 'payment' : 'payment to a contract';
}

/** The uploaded interfaces, and the form that uploads files. */
function Interfaces({ changed }: { readonly changed: () => void }) {
  const { value, error, reload } = useLoaded((signal) => control('listAbis', {}, signal), []);
  const note = useSignal('');
  const upload = async (input: HTMLInputElement): Promise<void> => {
    const files = [...(input.files ?? [])];
    input.value = '';
    try {
      const found = contractsIn(await Promise.all(files.map(abiOf)));
      for (const { name, abi } of found) await control('putAbi', { path: { name }, body: { abi } });
      note.value =
        found.length === 0
          ? 'no file has an ABI'
          : `${found.length} ${found.length === 1 ? 'interface' : 'interfaces'} uploaded`;
      reload();
      changed();
    } catch (cause) {
      note.value = (cause as Error).message;
    }
  };
  const remove = async (name: string): Promise<void> => {
    try {
      await control('deleteAbi', { path: { name } });
      note.value = `${name} deleted`;
      reload();
      changed();
    } catch (cause) {
      note.value = (cause as Error).message;
    }
  };
  const abis = value.value?.data ?? [];
  return (
    <>
      <h2>Interfaces</h2>
      <p class="quiet">
        Calls, events and errors of your contracts are shown in their own words when the sandbox knows their
        ABIs. Choose artifacts of Foundry or Hardhat, or files with an ABI.
      </p>
      <div class="fields">
        <label class="button file">
          <Icon of={Upload} /> Upload files
          <input
            class="hidden"
            type="file"
            multiple
            accept=".json"
            onChange={({ currentTarget }) => upload(currentTarget)}
          />
        </label>
        <span role="status">{note.value}</span>
      </div>
      <Failure message={error.value} />
      <ul>
        {abis.map(({ name, items }) => (
          <li key={name}>
            {name}: {items} functions, events and errors{' '}
            <button type="button" onClick={() => remove(name)}>
              Delete
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}

/** A contract and its interface, as written by a compiler. */
interface ContractAbi {
  readonly name: string;
  readonly abi: Record<string, unknown>[];
}

/**
 * Reads a file with an ABI: a list of items, or an artifact of Foundry or Hardhat. Returns undefined for other files.
 */
async function abiOf(file: Pick<File, 'name' | 'text'>): Promise<ContractAbi | undefined> {
  let content: unknown;
  try {
    content = JSON.parse(await file.text());
  } catch {
    return undefined;
  }
  const { abi, contractName } = Array.isArray(content)
    ? { abi: content, contractName: undefined }
    : ((content ?? {}) as { abi?: unknown; contractName?: unknown });
  if (!Array.isArray(abi) || abi.length === 0) return undefined;
  const name = typeof contractName === 'string' ? contractName : file.name.replace(/(\.abi)?\.json$/, '');
  return { name, abi: abi as Record<string, unknown>[] };
}

/** Returns the contracts in the files, each once. */
function contractsIn(files: readonly (ContractAbi | undefined)[]): readonly ContractAbi[] {
  return [...new Map(files.flatMap((file) => (file === undefined ? [] : [[file.name, file]]))).values()];
}
