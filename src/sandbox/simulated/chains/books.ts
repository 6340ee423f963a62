import type { CardEnvironment } from '../../../ports/cards.ts';
import type { FiatEnvironment } from '../../../ports/fiat.ts';
import { issuerAddress } from '../cards/parts.ts';
import { solverOn, toLedger } from '../exchange/solver.ts';
import { treasuryAddress } from '../fiat/treasury.ts';
import { DISTRIBUTOR_ADDRESS } from './evm/programs/addresses.ts';
import { POOL } from './evm/programs/pools.ts';
import { borrowerOf, VAULT } from './evm/programs/vault-state.ts';
import { FEE_ACCOUNT, NATIVE } from './ledger.ts';
import { PAYMASTER_ADDRESS } from './sponsors.ts';
import type { ChainStore } from './store.ts';

/** Who holds an asset. */
type Holder =
  | 'accounts'
  | 'bank'
  | 'borrowers'
  | 'cards'
  | 'exchange'
  | 'fees'
  | 'pools'
  | 'rewards'
  | 'sponsors'
  | 'vaults';

/** Where all of an asset is. Amounts in base units. */
export interface AssetBooks {
  readonly caip2: string;
  /** Null is the native asset. */
  readonly tokenAddress: string | null;
  /** What the faucet gave out. */
  readonly given: bigint;
  /** What contracts made of it, less what they destroyed: shares of vaults, the wrapped native asset. */
  readonly minted: bigint;
  readonly held: Readonly<Partial<Record<Holder, bigint>>>;
}

interface BalanceRow {
  readonly owner: string;
  readonly asset: string;
  readonly amount: string;
}

interface TransferRow {
  readonly sender: string;
  readonly recipient: string;
  readonly asset: string;
  readonly amount: string;
}

const NO_ADDRESS = `0x${'0'.repeat(40)}`;
const FAUCETS = [
  '0x00000000000000000000000000000000000fa0ce',
  'Faucet1111111111111111111111111111111111111',
  'T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb',
];

/**
 * The books of one chain, by asset.
 *
 * INVARIANT: what the faucet gave out and contracts minted is what the holders hold together.
 */
export async function booksOf(store: ChainStore, caip2: string): Promise<AssetBooks[]> {
  const holderOf = holdersOn(store, caip2, await treasuriesOn(store, caip2));
  const books = new Map<string, { given: bigint; minted: bigint; held: Partial<Record<Holder, bigint>> }>();
  const of = (asset: string) => {
    const known = books.get(asset) ?? { given: 0n, minted: 0n, held: {} };
    books.set(asset, known);
    return known;
  };
  const owned = store.all<BalanceRow>(
    `select owner, asset, amount from balances where caip2 = ? and amount <> '0'
     union all select owner, mint, amount from token_accounts where caip2 = ? and amount <> '0'`,
    ...[caip2, caip2],
  );
  for (const { owner, asset, amount } of owned) {
    const book = of(asset);
    const holder = holderOf(owner);
    book.held[holder] = (book.held[holder] ?? 0n) + BigInt(amount);
    // What an account sent to the zero address was not destroyed, unlike what contracts burn.
    if (owner === NO_ADDRESS) book.minted += BigInt(amount);
  }
  const moved = store.all<TransferRow>(
    `select sender, recipient, asset, amount from transfers
     where caip2 = ? and (sender in (?, ?, ?, ?) or recipient = ?)`,
    ...[caip2, ...FAUCETS, NO_ADDRESS, NO_ADDRESS],
  );
  for (const { sender, recipient, asset, amount } of moved) {
    const book = of(asset);
    if (FAUCETS.includes(sender)) book.given += BigInt(amount);
    if (sender === NO_ADDRESS) book.minted += BigInt(amount);
    if (recipient === NO_ADDRESS) book.minted -= BigInt(amount);
  }
  const contracts = contractsOn(store, caip2);
  return [...books]
    .filter(([asset]) => !contracts.has(asset))
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([asset, book]) => ({ caip2, tokenAddress: asset === NATIVE ? null : asset, ...book }));
}

/** Contracts with bytecode. They keep the balances of their tokens themselves. */
function contractsOn(store: ChainStore, caip2: string): ReadonlySet<string> {
  const rows = store.all<{ address: string }>('select address from evm_code where caip2 = ?', caip2);
  return new Set(rows.map(({ address }) => address));
}

/** The accounts of the simulated bank that the faucet has stocked, in the ledger's notation. */
async function treasuriesOn(store: ChainStore, caip2: string): Promise<readonly string[]> {
  const stocked = store.all<{ environment: FiatEnvironment }>(
    'select distinct environment from fiat_stocks where caip2 = ?',
    caip2,
  );
  const addresses = await Promise.all(stocked.map(({ environment }) => treasuryAddress(caip2, environment)));
  return addresses.flatMap((address) => (address === undefined ? [] : [toLedger(caip2, address)]));
}

function holdersOn(
  store: ChainStore,
  caip2: string,
  treasuries: readonly string[],
): (owner: string) => Holder {
  const having = (key: string) =>
    store
      .all<{ contract: string }>(
        'select contract from contract_state where caip2 = ? and key = ?',
        ...[caip2, key],
      )
      .map(({ contract }) => contract);
  const vaults = having(VAULT);
  const cardEnvironments = store
    .all<{ environment: CardEnvironment }>('select distinct environment from issuer_cards')
    .map(({ environment }) => environment);
  const solver = solverOn(caip2);
  const holders = new Map<string, Holder>([
    [FEE_ACCOUNT, 'fees'],
    [PAYMASTER_ADDRESS, 'sponsors'],
    [DISTRIBUTOR_ADDRESS, 'rewards'],
    ...cardEnvironments.map((environment) => [issuerAddress(environment), 'cards'] as const),
    ...(solver === undefined ? [] : [[toLedger(caip2, solver), 'exchange'] as const]),
    ...treasuries.map((treasury) => [treasury, 'bank'] as const),
    ...having(POOL).map((pool) => [pool, 'pools'] as const),
    ...vaults.map((vault) => [vault, 'vaults'] as const),
    ...vaults.map((vault) => [borrowerOf(vault), 'borrowers'] as const),
  ]);
  return (owner) => holders.get(owner) ?? 'accounts';
}
