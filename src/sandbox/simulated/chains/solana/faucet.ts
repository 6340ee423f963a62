import { sha256 } from '@noble/hashes/sha2.js';
import {
  base58ToBytes,
  bytesToBase58,
  concatBytes,
  utf8ToBytes,
} from '../../../../engine/crypto/encoding.ts';
import { associatedTokenAddress, TOKEN_PROGRAM } from '../../../../engine/signing/solana/associated-token.ts';
import { debitPayer } from '../fund.ts';
import { NATIVE, RevertError } from '../ledger.ts';
import { type Block, recordTransfer } from '../pool.ts';
import {
  type Deposit,
  type Funded,
  InvalidDepositError,
  recordDeposit,
  registerToken,
  type World,
} from '../world.ts';
import {
  FAUCET_ADDRESS,
  MINT_BYTES,
  mintBytes,
  mintOf,
  NATIVE_MINT,
  NO_DATA,
  rentExemption,
  type SolanaAccount,
  SYSTEM_PROGRAM,
  TOKEN_ACCOUNT_BYTES,
  tokenAccountBytes,
} from './accounts.ts';
import { withReceipt } from './deposit-receipt.ts';
import type { SolanaParts } from './parts.ts';
import { holding, type SolanaState } from './state.ts';

const NATIVE_DECIMALS = 9;
const U64_MAX = 2n ** 64n - 1n;

/** The parts of a chain that store its accounts. */
type Accounts = Pick<SolanaParts, 'world' | 'caip2' | 'state'>;

/**
 * Deposits an asset from the faucet or a payer. Creates the mint and the token account if they do not exist.
 *
 * @throws InvalidDepositError; RevertError if the payer's balance is too low.
 */
export function fundSolana(parts: SolanaParts, deposit: Deposit): Funded {
  const { world, caip2, state, blocks } = parts;
  const { address, tokenAddress, rawAmount, decimals = 6, symbol = 'TOKEN' } = deposit;
  const { payer } = deposit;
  const { ledger } = state;
  checkAddress(address, 'address');
  if (tokenAddress !== null) checkAddress(tokenAddress, 'tokenAddress');
  const asset = tokenAddress ?? NATIVE;
  const mint = tokenAddress === null ? undefined : mintOf(state.account(tokenAddress));
  if (tokenAddress !== null && mint === undefined) requireUnused(state, tokenAddress);
  if (payer === undefined && (mint?.supply ?? ledger.total(asset)) + rawAmount > U64_MAX) {
    throw new InvalidDepositError('rawAmount', 'expected a total supply below 2^64');
  }
  const block = blocks.head();
  if (tokenAddress !== null) {
    registerToken(world, caip2, { address: tokenAddress, decimals, symbol, program: TOKEN_PROGRAM });
    createMint(parts, tokenAddress, block);
  }
  const sender = payer ?? FAUCET_ADDRESS;
  const token = tokenAddress === null ? undefined : tokenParts(state, { address, mint: tokenAddress, payer });
  const transaction = { sender, recipient: address, amount: rawAmount, token };
  const hash = withReceipt({ state, caip2, block }, transaction, () => {
    if (token === undefined) {
      if (payer !== undefined) debitPayer(ledger, { payer, asset, rawAmount });
      ledger.credit(address, NATIVE, rawAmount);
    } else fundToken(parts, { ...transaction, token, block });
    return recordDeposit(world, caip2, {
      sender,
      recipient: address,
      asset,
      amount: rawAmount,
      block,
      hashOf,
    });
  });
  const rawBalance =
    tokenAddress === null ? ledger.balance(address, NATIVE) : holding(state, address, tokenAddress);
  return { hash, rawBalance, blockNumber: BigInt(block.number) };
}

/**
 * Requires that an address is unused. A mint must not replace an account that has data, such as a program or a token
 * account with a balance.
 */
function requireUnused(state: SolanaState, tokenAddress: string): void {
  const { owner, data } = state.account(tokenAddress);
  if (owner === SYSTEM_PROGRAM && data.length === 0) return;
  throw new InvalidDepositError(
    'tokenAddress',
    `expected a mint or an unused address, got an account of \`${owner}\``,
  );
}

function tokenParts(
  state: SolanaState,
  { address, mint, payer }: { address: string; mint: string; payer: string | undefined },
) {
  const { program } = state.mint(mint)!;
  const from = payer === undefined ? undefined : associatedTokenAddress(payer, mint, program);
  return { mint, program, to: associatedTokenAddress(address, mint, program), from };
}

function fundToken(
  parts: Accounts,
  {
    sender,
    recipient,
    amount,
    token: { mint, program, from, to },
    block,
  }: {
    sender: string;
    recipient: string;
    amount: bigint;
    token: ReturnType<typeof tokenParts>;
    block: Block;
  },
): void {
  const { state } = parts;
  if (from !== undefined) {
    const own = state.tokenAccount(from);
    if (own === undefined || own.amount < amount) throw new RevertError(`\`${sender}\` holds too little`);
    changeToken(state, from, -amount);
  }
  if (state.tokenAccount(to) === undefined) {
    // The payer also pays the rent of the new account.
    const rent = rentExemption(TOKEN_ACCOUNT_BYTES);
    if (from !== undefined) debitPayer(state.ledger, { payer: sender, asset: NATIVE, rawAmount: rent });
    const data = tokenAccountBytes({
      ...{ mint, owner: recipient, amount: 0n, delegate: null, delegatedAmount: 0n, state: 'initialized' },
      ...{ nativeReserve: null, closeAuthority: null, extensions: NO_DATA },
    });
    createAccount(parts, { address: to, owner: program, data, rent, sender, block });
  }
  changeToken(state, to, amount);
  if (from === undefined) {
    const account = state.account(mint);
    const known = mintOf(account)!;
    state.write(mint, {
      ...account,
      data: mintBytes({ ...known, supply: known.supply + amount }, account.data),
    });
  }
}

function changeToken(state: SolanaState, address: string, change: bigint): void {
  const { address: _, ...token } = state.tokenAccount(address)!;
  const account = state.account(address);
  const data = tokenAccountBytes({ ...token, amount: token.amount + change }, account.data);
  state.write(address, { ...account, data });
}

/** Pays the rent exemption of an account and sets its data. Lamports that the account already has are kept. */
function createAccount(
  { world: { store }, caip2, state }: Accounts,
  {
    address,
    rent,
    sender,
    block,
    ...account
  }: Pick<SolanaAccount, 'owner' | 'data'> & { address: string; rent: bigint; sender: string; block: Block },
): void {
  const lamports = state.account(address).lamports + rent;
  state.write(address, { ...account, lamports, executable: false });
  const hash = hashOf(`account ${address} of ${caip2}`);
  recordTransfer(store, caip2, { sender, recipient: address, asset: NATIVE, amount: rent, hash, block });
}

/** Creates the account of a mint that the faucet or the list of known tokens uses, unless it exists. */
function createMint(parts: Accounts, address: string, block: Block): void {
  const { world, caip2, state } = parts;
  if (mintOf(state.account(address)) !== undefined) return;
  const isNative = address === NATIVE_MINT;
  const { decimals, program } = isNative
    ? { decimals: NATIVE_DECIMALS, program: TOKEN_PROGRAM }
    : (state.mint(address) ?? registered(world, caip2, address));
  const data = mintBytes({
    ...{ mintAuthority: isNative ? null : FAUCET_ADDRESS, decimals },
    ...{ supply: isNative ? 0n : state.ledger.total(address), freezeAuthority: null, extensions: NO_DATA },
  });
  const rent = rentExemption(MINT_BYTES);
  createAccount(parts, { address, owner: program, data, rent, sender: FAUCET_ADDRESS, block });
}

function registered({ store }: World, caip2: string, address: string): { decimals: number; program: string } {
  const row = store.first<{ decimals: number; program: string | null }>(
    'select decimals, program from tokens where caip2 = ? and address = ?',
    ...[caip2, address],
  )!;
  return { decimals: row.decimals, program: row.program ?? TOKEN_PROGRAM };
}

/**
 * Creates the mints of wrapped SOL and of known tokens. Versions before 0.2 did not store the data of accounts; for
 * their stores, also creates the other mints and the data of token accounts.
 */
export function prepareAccounts(parts: Accounts, block: Block): void {
  const { world, caip2, state } = parts;
  const { store } = world;
  store.atomically(() => {
    const known = world.knownTokens().filter((token) => token.caip2 === caip2);
    const rows = store.all<{ address: string }>('select address from tokens where caip2 = ?', caip2);
    for (const { address } of [{ address: NATIVE_MINT }, ...known, ...rows])
      createMint(parts, address, block);
    const older = store.all<{
      address: string;
      owner: string;
      mint: string;
      amount: string;
      delegate: string | null;
      delegated_amount: string;
    }>(
      `select t.address, t.owner, t.mint, t.amount, t.delegate, t.delegated_amount from token_accounts t
       left join solana_accounts a on a.caip2 = t.caip2 and a.address = t.address
       where t.caip2 = ? and a.address is null`,
      caip2,
    );
    for (const { address, owner, mint, delegate, ...each } of older) {
      const data = tokenAccountBytes({
        ...{ mint, owner, delegate, state: 'initialized', nativeReserve: null, closeAuthority: null },
        ...{ amount: BigInt(each.amount), delegatedAmount: BigInt(each.delegated_amount) },
        extensions: NO_DATA,
      });
      const { lamports } = state.account(address);
      state.write(address, { lamports, owner: state.mint(mint)!.program, executable: false, data });
    }
  });
}

// Returns the hash of a string as 64 bytes in base58, because Solana names a transaction by its first signature.
function hashOf(text: string): string {
  const half = sha256(utf8ToBytes(text));
  return bytesToBase58(concatBytes(half, sha256(half)));
}

function checkAddress(address: string, field: 'address' | 'tokenAddress'): string {
  try {
    if (base58ToBytes(address).length === 32) return address;
  } catch {
    // The error below rejects the address.
  }
  throw new InvalidDepositError(field, `expected 32 bytes in base58, got \`${address}\``);
}
