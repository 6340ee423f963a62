import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  type Address,
  address,
  type EncodedAccount,
  getBase58Decoder,
  getBase58Encoder,
  getCompiledTransactionMessageDecoder,
  getTransactionDecoder,
  lamports,
  type Transaction,
} from '@solana/kit';
import { FailedTransactionMetadata, LiteSVM } from 'litesvm';

/** The genesis hash of the node. CAIP-2 uses its first 32 characters. */
export const genesisHash = 'LiteSVMgenesis111111111111111111111111111111';

const tokenPrograms = [
  'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA',
  'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb',
].map((program) => address(program));

/**
 * A real Solana virtual machine behind the JSON-RPC methods that wallets use. Transactions are executed on arrival.
 */
export interface LiteSvmNode extends AsyncDisposable {
  readonly url: string;
  readonly svm: LiteSVM;
  fund(owner: string, amount: bigint): void;
  /** Creates a mint of the token program. */
  makeMint(mint: string, decimals: number): void;
  /** Deposits tokens into a token account of an owner. */
  fundToken(account: { address: string; owner: string; mint: string; amount: bigint }): void;
}

class RpcError extends Error {
  readonly code: number;
  readonly data: unknown;

  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

interface Ran {
  readonly slot: bigint;
  readonly err: unknown;
  readonly fee: number;
  readonly keys: readonly string[];
  readonly before: Held;
  readonly after: Held;
}

/** The token balances of the accounts in a transaction, in the format of its metadata. */
interface Held {
  readonly balances: readonly bigint[];
  readonly tokens: readonly object[];
}

/** @param genesis the genesis hash that the node reports. */
export async function startLiteSvmNode(genesis = genesisHash): Promise<LiteSvmNode> {
  const svm = new LiteSVM();
  const ran = new Map<string, Ran>();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { id, method, params } = JSON.parse(Buffer.concat(chunks).toString()) as RpcCall;
      let answer: object;
      try {
        answer = { jsonrpc: '2.0', id, result: answerTo({ svm, ran, genesis }, method, params ?? []) };
      } catch (error) {
        if (!(error instanceof RpcError)) throw error;
        answer = {
          jsonrpc: '2.0',
          id,
          error: { code: error.code, message: error.message, data: error.data },
        };
      }
      response.setHeader('content-type', 'application/json');
      // 64-bit integers are serialized as digits, like those of validators.
      response.end(
        JSON.stringify(answer, (_, value) => (typeof value === 'bigint' ? rawJson(String(value)) : value)),
      );
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    svm,
    fund: (owner, amount) => void svm.airdrop(address(owner), lamports(amount)),
    makeMint: (mint, decimals) => svm.setAccount(accountOf(svm, mint, mintData(decimals))),
    fundToken: (account) => svm.setAccount(accountOf(svm, account.address, tokenAccountData(account))),
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}

// The compiler does not know this function yet.
const rawJson = (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON;

interface RpcCall {
  readonly id: number;
  readonly method: string;
  readonly params?: readonly unknown[];
}

interface State {
  readonly svm: LiteSVM;
  readonly ran: Map<string, Ran>;
  readonly genesis: string;
}

function answerTo({ svm, ran, genesis }: State, method: string, params: readonly unknown[]): unknown {
  const [first, second] = params as [never, never];
  const withContext = (value: unknown) => ({ context: { slot: svm.getClock().slot }, value });
  switch (method) {
    case 'getGenesisHash':
      return genesis;
    case 'getBalance':
      return withContext(svm.getBalance(first) ?? 0n);
    case 'getLatestBlockhash':
      return withContext({ blockhash: svm.latestBlockhash(), lastValidBlockHeight: 150 });
    case 'isBlockhashValid':
      return withContext(first === svm.latestBlockhash());
    case 'getMinimumBalanceForRentExemption':
      return svm.minimumBalanceForRentExemption(BigInt(first));
    case 'getAccountInfo': {
      const account = svm.getAccount(first);
      return withContext(account.exists ? shown(account) : null);
    }
    case 'getTokenAccountsByOwner':
      return withContext(tokenAccountsOf(svm, first, second));
    case 'sendTransaction':
      return send({ svm, ran }, first);
    case 'simulateTransaction':
      return withContext(simulate(svm, first));
    case 'getSignatureStatuses':
      return withContext((first as string[]).map((hash) => statusOf(ran.get(hash))));
    case 'getTransaction': {
      const found = ran.get(first);
      return found === undefined ? null : shownTransaction(found);
    }
    case 'getSlot':
      // This is the newest block. The next transaction is in the slot after it.
      return svm.getClock().slot - 1n;
    case 'getSignaturesForAddress':
      return [...ran]
        .filter(([, { keys }]) => keys.includes(first))
        .map(([signature, { slot, err }]) => ({ signature, slot, err }))
        .reverse();
    default:
      throw new RpcError(-32601, 'Method not found');
  }
}

function statusOf(found: Ran | undefined) {
  return found && { slot: found.slot, err: found.err, confirmations: 3, confirmationStatus: 'confirmed' };
}

// Validators simulate a transaction and accept it only if it succeeds.
function send({ svm, ran }: Omit<State, 'genesis'>, encoded: string): string {
  const transaction = decode(encoded);
  const signature = signatureOf(transaction);
  const tried = svm.simulateTransaction(transaction);
  if (tried instanceof FailedTransactionMetadata) {
    const err = errorOf(tried);
    const name = typeof err === 'string' ? err : 'failed';
    if (name === 'SignatureFailure') throw new RpcError(-32003, 'Transaction signature verification failure');
    throw new RpcError(-32002, `Transaction simulation failed: ${name}`, { err, logs: tried.meta().logs() });
  }
  const { staticAccounts } = getCompiledTransactionMessageDecoder().decode(transaction.messageBytes);
  const keys = staticAccounts.map(String);
  const before = heldBy(svm, keys);
  svm.sendTransaction(transaction);
  const fee = 5_000 * Object.keys(transaction.signatures).length;
  const { slot } = svm.getClock();
  ran.set(signature, { slot, err: null, fee, keys, before, after: heldBy(svm, keys) });
  // Each transaction has a separate block.
  svm.warpToSlot(slot + 1n);
  return signature;
}

function heldBy(svm: LiteSVM, keys: readonly string[]): Held {
  const accounts = keys.map((key) => svm.getAccount(address(key)));
  const tokens = accounts.flatMap((account, accountIndex) => {
    const isToken =
      account.exists && tokenPrograms.includes(account.programAddress) && account.data.length >= 165;
    if (!isToken) return [];
    const data = Buffer.from(account.data);
    const [mint, owner] = [data.subarray(0, 32), data.subarray(32, 64)].map((bytes) =>
      getBase58Decoder().decode(bytes),
    );
    return [{ accountIndex, mint, owner, uiTokenAmount: { amount: String(data.readBigUInt64LE(64)) } }];
  });
  return { balances: accounts.map((account) => (account.exists ? account.lamports : 0n)), tokens };
}

function shownTransaction({ slot, err, fee, keys, before, after }: Ran) {
  return {
    slot,
    blockTime: 1_767_225_600,
    transaction: { message: { accountKeys: keys } },
    meta: {
      ...{ err, fee, preBalances: before.balances, postBalances: after.balances },
      ...{ preTokenBalances: before.tokens, postTokenBalances: after.tokens },
    },
  };
}

function simulate(svm: LiteSVM, encoded: string) {
  const transaction = decode(encoded);
  // With `sigVerify: false`, the simulation checks no signatures.
  const tried = svm.withSigverify(false).simulateTransaction(transaction);
  svm.withSigverify(true);
  const err = tried instanceof FailedTransactionMetadata ? errorOf(tried) : null;
  const meta = tried.meta();
  return { err, logs: meta.logs(), unitsConsumed: meta.computeUnitsConsumed() };
}

function decode(encoded: string): Transaction {
  try {
    return getTransactionDecoder().decode(Buffer.from(encoded, 'base64')) as Transaction;
  } catch (error) {
    throw new RpcError(-32602, `failed to deserialize: ${(error as Error).message}`);
  }
}

function signatureOf({ signatures }: Transaction): string {
  return getBase58Decoder().decode(Object.values(signatures)[0] ?? new Uint8Array(64));
}

// In the order of the machine's enumerations. Source: solana-transaction-error, solana-instruction-error.

const transactionErrors = [
  ...['AccountInUse', 'AccountLoadedTwice', 'AccountNotFound', 'ProgramAccountNotFound'],
  ...['InsufficientFundsForFee', 'InvalidAccountForFee', 'AlreadyProcessed', 'BlockhashNotFound'],
  ...['CallChainTooDeep', 'MissingSignatureForFee', 'InvalidAccountIndex', 'SignatureFailure'],
  ...['InvalidProgramForExecution', 'SanitizeFailure', 'ClusterMaintenance'],
];

const instructionErrors = [
  ...['GenericError', 'InvalidArgument', 'InvalidInstructionData', 'InvalidAccountData'],
  ...['AccountDataTooSmall', 'InsufficientFunds', 'IncorrectProgramId', 'MissingRequiredSignature'],
  ...['AccountAlreadyInitialized', 'UninitializedAccount', 'UnbalancedInstruction', 'ModifiedProgramId'],
  ...['ExternalAccountLamportSpend', 'ExternalAccountDataModified', 'ReadonlyLamportChange'],
  ...['ReadonlyDataModified', 'DuplicateAccountIndex', 'ExecutableModified', 'RentEpochModified'],
  ...['NotEnoughAccountKeys', 'AccountDataSizeChanged', 'AccountNotExecutable', 'AccountBorrowFailed'],
  ...['AccountBorrowOutstanding', 'DuplicateAccountOutOfSync', 'InvalidError', 'ExecutableDataModified'],
  ...['ExecutableLamportChange', 'ExecutableAccountNotRentExempt', 'UnsupportedProgramId', 'CallDepth'],
  ...['MissingAccount', 'ReentrancyNotAllowed', 'MaxSeedLengthExceeded', 'InvalidSeeds', 'InvalidRealloc'],
  ...['ComputationalBudgetExceeded', 'PrivilegeEscalation', 'ProgramEnvironmentSetupFailure'],
  ...['ProgramFailedToComplete', 'ProgramFailedToCompile', 'Immutable', 'IncorrectAuthority'],
  ...[
    'AccountNotRentExempt',
    'InvalidAccountOwner',
    'ArithmeticOverflow',
    'UnsupportedSysvar',
    'IllegalOwner',
  ],
];

/** The error of a failed transaction, in the JSON of nodes. */
export function errorOf(failed: FailedTransactionMetadata): unknown {
  const err = failed.err() as unknown;
  if (typeof err === 'number') return transactionErrors[err] ?? `Error${err}`;
  const { index, accountIndex } = err as { index?: number; accountIndex?: number };
  if (accountIndex !== undefined) return { InsufficientFundsForRent: { account_index: accountIndex } };
  const cause = (err as { err(): number | { code: number } }).err();
  return {
    InstructionError: [
      index,
      typeof cause === 'number' ? (instructionErrors[cause] ?? `Error${cause}`) : { Custom: cause.code },
    ],
  };
}

function tokenAccountsOf(svm: LiteSVM, owner: string, { mint }: { mint: string }) {
  if (!svm.getAccount(address(mint)).exists) {
    throw new RpcError(-32602, 'Invalid param: could not find mint');
  }
  const [ownerBytes, mintBytes] = [owner, mint].map((text) => Buffer.from(getBase58Encoder().encode(text)));
  return tokenPrograms
    .flatMap((program) => svm.getProgramAccounts(program))
    .filter(
      ({ data }) =>
        data.length >= 165 &&
        mintBytes!.equals(data.subarray(0, 32)) &&
        ownerBytes!.equals(data.subarray(32, 64)),
    )
    .map((account) => ({ pubkey: account.address, account: shown(account) }));
}

function shown(account: EncodedAccount) {
  return {
    data: [Buffer.from(account.data).toString('base64'), 'base64'],
    executable: account.executable,
    lamports: account.lamports,
    owner: account.programAddress,
    // The value is larger than 2^53, as on mainnet.
    rentEpoch: 2n ** 64n - 1n,
    space: account.data.length,
  };
}

function accountOf(svm: LiteSVM, at: string, data: Uint8Array): EncodedAccount {
  return {
    address: address(at),
    data,
    executable: false,
    lamports: lamports(svm.minimumBalanceForRentExemption(BigInt(data.length))),
    programAddress: tokenPrograms[0] as Address,
    space: BigInt(data.length),
  };
}

// authority option || authority || supply || decimals || is initialized || freeze authority option || freeze authority
function mintData(decimals: number): Uint8Array {
  const data = Buffer.alloc(82);
  data.writeBigUInt64LE(10n ** 15n, 36);
  data[44] = decimals;
  data[45] = 1;
  return data;
}

// mint || owner || amount || delegate option || delegate || state || …
function tokenAccountData({
  owner,
  mint,
  amount,
}: {
  owner: string;
  mint: string;
  amount: bigint;
}): Uint8Array {
  const data = Buffer.alloc(165);
  data.set(getBase58Encoder().encode(mint), 0);
  data.set(getBase58Encoder().encode(owner), 32);
  data.writeBigUInt64LE(amount, 64);
  data[108] = 1;
  return data;
}
