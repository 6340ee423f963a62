import { TOKEN_PROGRAM } from '../../../../engine/signing/solana/associated-token.ts';
import { type Ledger, makeLedger } from '../ledger.ts';
import type { ChainStore } from '../store.ts';
import { knownToken, type World } from '../world.ts';

export const TOKEN_ACCOUNT_BYTES = 165;

/** A token account. Addresses are base58. */
export interface TokenAccount {
  readonly address: string;
  readonly owner: string;
  readonly mint: string;
  readonly amount: bigint;
  readonly delegate: string | null;
  readonly delegatedAmount: bigint;
}

/** The accounts of one Solana chain. */
export interface SolanaState {
  readonly store: ChainStore;
  readonly ledger: Ledger;
  mint(address: string): { decimals: number; program: string } | undefined;
  tokenAccount(address: string): TokenAccount | undefined;
  tokenAccountsOf(owner: string, mint: string): readonly TokenAccount[];
  openTokenAccount(account: Pick<TokenAccount, 'address' | 'owner' | 'mint'>): void;
  writeTokenAccount(account: TokenAccount): void;
  removeTokenAccount(address: string): void;
}

interface TokenAccountRow {
  address: string;
  owner: string;
  mint: string;
  amount: string;
  delegate: string | null;
  delegated_amount: string;
}

/** The rent exemption: (128 bytes of overhead + size) * 3480 lamports per byte and year * 2 years. */
export function rentExemption(sizeBytes: number): bigint {
  return BigInt(128 + sizeBytes) * 3_480n * 2n;
}

export function makeSolanaState(world: World, caip2: string): SolanaState {
  const { store } = world;
  return {
    store,
    ledger: makeLedger(store, caip2),
    mint(address) {
      const row = store.first<{ decimals: number; program: string | null }>(
        'select decimals, program from tokens where caip2 = ? and address = ?',
        ...[caip2, address],
      );
      if (row !== undefined) return { decimals: row.decimals, program: row.program ?? TOKEN_PROGRAM };
      const known = knownToken(world, caip2, address);
      return known && { decimals: known.decimals, program: TOKEN_PROGRAM };
    },
    tokenAccount(address) {
      const row = store.first<TokenAccountRow>(
        'select * from token_accounts where caip2 = ? and address = ?',
        ...[caip2, address],
      );
      return row && toTokenAccount(row);
    },
    tokenAccountsOf: (owner, mint) =>
      store
        .all<TokenAccountRow>(
          'select * from token_accounts where caip2 = ? and owner = ? and mint = ? order by address',
          ...[caip2, owner, mint],
        )
        .map(toTokenAccount),
    openTokenAccount: ({ address, owner, mint }) =>
      store.run(
        `insert into token_accounts (caip2, address, owner, mint, amount) values (?, ?, ?, ?, '0')`,
        ...[caip2, address, owner, mint],
      ),
    writeTokenAccount: ({ address, amount, delegate, delegatedAmount }) =>
      store.run(
        `update token_accounts set amount = ?, delegate = ?, delegated_amount = ? where caip2 = ? and address = ?`,
        ...[String(amount), delegate, String(delegatedAmount), caip2, address],
      ),
    removeTokenAccount: (address) =>
      store.run('delete from token_accounts where caip2 = ? and address = ?', caip2, address),
  };
}

function toTokenAccount(row: TokenAccountRow): TokenAccount {
  return {
    address: row.address,
    owner: row.owner,
    mint: row.mint,
    amount: BigInt(row.amount),
    delegate: row.delegate,
    delegatedAmount: BigInt(row.delegated_amount),
  };
}

/** An owner's total balance of a token over all token accounts. */
export function holding(state: SolanaState, owner: string, mint: string): bigint {
  return state.tokenAccountsOf(owner, mint).reduce((sum, { amount }) => sum + amount, 0n);
}
