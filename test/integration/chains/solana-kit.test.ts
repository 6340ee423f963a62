import {
  type Address,
  airdropFactory,
  appendTransactionMessageInstructions,
  assertIsTransactionWithBlockhashLifetime,
  type Base58EncodedBytes,
  createSolanaRpc,
  createSolanaRpcSubscriptions,
  createTransactionMessage,
  generateKeyPairSigner,
  getBase64EncodedWireTransaction,
  getSignatureFromTransaction,
  type Instruction,
  isSolanaError,
  type KeyPairSigner,
  lamports,
  pipe,
  SOLANA_ERROR__INSTRUCTION_ERROR__CUSTOM,
  SOLANA_ERROR__JSON_RPC__SERVER_ERROR_SEND_TRANSACTION_PREFLIGHT_FAILURE,
  sendAndConfirmTransactionFactory,
  setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash,
  signTransactionMessageWithSigners,
} from '@solana/kit';
import { getCreateAccountInstruction, getTransferSolInstruction } from '@solana-program/system';
import {
  fetchMint,
  fetchToken,
  findAssociatedTokenPda,
  getCreateAssociatedTokenIdempotentInstructionAsync,
  getInitializeMint2Instruction,
  getMintSize,
  getMintToCheckedInstruction,
  getTransferCheckedInstruction,
  TOKEN_PROGRAM_ADDRESS,
} from '@solana-program/token';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSandbox, type TestSandbox } from '../../../src/testing/testing.ts';

// The usual flows of @solana/kit, unmodified, against the URL of a chain.

const SOL = 1_000_000_000n;

let sandbox: TestSandbox;
let rpc: ReturnType<typeof createSolanaRpc<string>>;
let rpcSubscriptions: ReturnType<typeof createSolanaRpcSubscriptions<string>>;

beforeAll(async () => {
  sandbox = await startSandbox({ clock: 'frozen', rpcPort: 0, confirmAfterMs: 0 });
  rpc = createSolanaRpc(`${sandbox.rpcUrl}/solana`);
  rpcSubscriptions = createSolanaRpcSubscriptions(`${sandbox.rpcUrl.replace('http', 'ws')}/solana`);
});
afterAll(() => sandbox.close());

async function funded(amount = 10n * SOL): Promise<KeyPairSigner> {
  const signer = await generateKeyPairSigner();
  const airdrop = airdropFactory({ rpc, rpcSubscriptions });
  await airdrop({ commitment: 'confirmed', recipientAddress: signer.address, lamports: lamports(amount) });
  return signer;
}

async function signed(payer: KeyPairSigner, instructions: readonly Instruction[]) {
  const { value: blockhash } = await rpc.getLatestBlockhash().send();
  const message = pipe(
    createTransactionMessage({ version: 0 }),
    (each) => setTransactionMessageFeePayerSigner(payer, each),
    (each) => setTransactionMessageLifetimeUsingBlockhash(blockhash, each),
    (each) => appendTransactionMessageInstructions(instructions, each),
  );
  const transaction = await signTransactionMessageWithSigners(message);
  assertIsTransactionWithBlockhashLifetime(transaction);
  return transaction;
}

/** Sends a transaction and waits for its confirmation, which kit learns by subscriptions. */
async function sent(payer: KeyPairSigner, ...instructions: Instruction[]) {
  const transaction = await signed(payer, instructions);
  const send = sendAndConfirmTransactionFactory({ rpc, rpcSubscriptions });
  await send(transaction, { commitment: 'confirmed' });
  return getSignatureFromTransaction(transaction);
}

const transfer = (source: KeyPairSigner, destination: Address, amount: bigint) =>
  getTransferSolInstruction({ source, destination, amount: lamports(amount) });

test('an airdrop and a transfer that is confirmed by subscription', async () => {
  const [alice, bob] = [await funded(), await generateKeyPairSigner()];
  expect((await rpc.getBalance(alice.address).send()).value).toBe(10n * SOL);
  const signature = await sent(alice, transfer(alice, bob.address, SOL));
  expect((await rpc.getBalance(bob.address).send()).value).toBe(SOL);
  expect((await rpc.getBalance(alice.address).send()).value).toBe(9n * SOL - 5_000n);
  const { value } = await rpc.getSignatureStatuses([signature]).send();
  expect(value[0]).toMatchObject({ err: null, confirmationStatus: 'confirmed' });
  const found = await rpc
    .getTransaction(signature, {
      ...{ commitment: 'confirmed', encoding: 'jsonParsed', maxSupportedTransactionVersion: 0 },
    })
    .send();
  expect(found?.meta).toMatchObject({ err: null, fee: 5_000n, computeUnitsConsumed: 150n });
  const held = found?.transaction.message.accountKeys.map(({ pubkey }, index) => [
    pubkey,
    found.meta?.preBalances[index],
    found.meta?.postBalances[index],
  ]);
  expect(held).toHaveLength(3);
  expect(held).toEqual(
    expect.arrayContaining([
      [alice.address, 10n * SOL, 9n * SOL - 5_000n],
      [bob.address, 0n, SOL],
      ['11111111111111111111111111111111', 1n, 1n],
    ]),
  );
  expect(found?.transaction.message.instructions).toMatchObject([
    {
      program: 'system',
      parsed: {
        type: 'transfer',
        info: { source: alice.address, destination: bob.address, lamports: SOL },
      },
    },
  ]);
  expect(found?.version).toBe(0);
  const listed = await rpc.getSignaturesForAddress(bob.address, { commitment: 'confirmed' }).send();
  expect(listed).toMatchObject([{ signature, err: null, slot: found!.slot }]);
  // It is not final yet.
  expect(
    await rpc
      .getTransaction(signature, {
        commitment: 'finalized',
        encoding: 'json',
        maxSupportedTransactionVersion: 0,
      })
      .send(),
  ).toBeNull();
  await sandbox.mine(32, 'solana');
  expect(
    await rpc
      .getTransaction(signature, {
        commitment: 'finalized',
        encoding: 'json',
        maxSupportedTransactionVersion: 0,
      })
      .send(),
  ).toMatchObject({
    slot: found!.slot,
  });
});

test('a token: mint, associated accounts, transfer, parsed views and program accounts', async () => {
  const [alice, bob, mint] = [await funded(), await generateKeyPairSigner(), await generateKeyPairSigner()];
  const space = BigInt(getMintSize());
  const rent = await rpc.getMinimumBalanceForRentExemption(space).send();
  expect(rent).toBe(1_461_600n);
  await sent(
    alice,
    getCreateAccountInstruction({
      ...{ payer: alice, newAccount: mint, lamports: rent, space },
      programAddress: TOKEN_PROGRAM_ADDRESS,
    }),
    getInitializeMint2Instruction({ mint: mint.address, decimals: 6, mintAuthority: alice.address }),
  );
  const accountOf = async (owner: Address) =>
    (await findAssociatedTokenPda({ owner, mint: mint.address, tokenProgram: TOKEN_PROGRAM_ADDRESS }))[0];
  const [from, to] = [await accountOf(alice.address), await accountOf(bob.address)];
  for (const owner of [alice.address, bob.address]) {
    await sent(
      alice,
      await getCreateAssociatedTokenIdempotentInstructionAsync({ payer: alice, mint: mint.address, owner }),
    );
  }
  await sent(
    alice,
    getMintToCheckedInstruction({
      ...{ mint: mint.address, token: from, mintAuthority: alice, amount: 5_000_000n, decimals: 6 },
    }),
  );
  const signature = await sent(
    alice,
    getTransferCheckedInstruction({
      ...{ source: from, mint: mint.address, destination: to, authority: alice },
      ...{ amount: 1_250_000n, decimals: 6 },
    }),
  );
  expect((await fetchMint(rpc, mint.address)).data).toMatchObject({ supply: 5_000_000n, decimals: 6 });
  expect((await fetchToken(rpc, to)).data).toMatchObject({ amount: 1_250_000n, owner: bob.address });
  expect((await rpc.getTokenSupply(mint.address).send()).value).toMatchObject({
    ...{ amount: '5000000', uiAmountString: '5' },
  });
  expect((await rpc.getTokenAccountBalance(to).send()).value).toMatchObject({
    ...{ amount: '1250000', decimals: 6, uiAmountString: '1.25' },
  });
  const owned = await rpc
    .getTokenAccountsByOwner(bob.address, { mint: mint.address }, { encoding: 'jsonParsed' })
    .send();
  expect(owned.value).toMatchObject([
    {
      pubkey: to,
      account: {
        lamports: 2_039_280n,
        data: { program: 'spl-token', parsed: { info: { tokenAmount: { amount: '1250000' } } } },
      },
    },
  ]);
  const found = await rpc
    .getTransaction(signature, {
      ...{ commitment: 'confirmed', encoding: 'jsonParsed', maxSupportedTransactionVersion: 0 },
    })
    .send();
  expect(found?.meta?.postTokenBalances?.map(({ uiTokenAmount }) => uiTokenAmount.amount).sort()).toEqual([
    ...['1250000', '3750000'],
  ]);
  const filtered = await rpc
    .getProgramAccounts(TOKEN_PROGRAM_ADDRESS, {
      encoding: 'base64',
      filters: [
        { dataSize: 165n },
        {
          memcmp: {
            ...{ offset: 0n, encoding: 'base58' },
            bytes: mint.address as string as Base58EncodedBytes,
          },
        },
      ],
    })
    .send();
  expect(filtered.map(({ pubkey }) => pubkey).sort()).toEqual([from, to].sort());
});

test('a failing transaction is simulated with its logs, and refused when it is sent', async () => {
  const [alice, bob] = [await funded(), await generateKeyPairSigner()];
  const transaction = await signed(alice, [transfer(alice, bob.address, 100n * SOL)]);
  const wire = getBase64EncodedWireTransaction(transaction);
  const { value } = await rpc.simulateTransaction(wire, { encoding: 'base64' }).send();
  expect(value.err).toEqual({ InstructionError: [0n, { Custom: 1n }] });
  expect(value.logs).toEqual([
    'Program 11111111111111111111111111111111 invoke [1]',
    'Transfer: insufficient lamports 9999995000, need 100000000000',
    'Program 11111111111111111111111111111111 failed: custom program error: 0x1',
  ]);
  const failure = await rpc
    .sendTransaction(wire, { encoding: 'base64' })
    .send()
    .catch((error: unknown) => error);
  expect(
    isSolanaError(failure, SOLANA_ERROR__JSON_RPC__SERVER_ERROR_SEND_TRANSACTION_PREFLIGHT_FAILURE),
  ).toBe(true);
  const { cause } = failure as { cause: unknown };
  expect(isSolanaError(cause, SOLANA_ERROR__INSTRUCTION_ERROR__CUSTOM)).toBe(true);
});

test('a failing transaction without a preflight is included, costs its fee, and its error is reported', async () => {
  const [alice, bob] = [await funded(), await generateKeyPairSigner()];
  const transaction = await signed(alice, [transfer(alice, bob.address, 100n * SOL)]);
  const send = sendAndConfirmTransactionFactory({ rpc, rpcSubscriptions });
  const failure = await send(transaction, { commitment: 'confirmed', skipPreflight: true }).catch(
    (error: unknown) => error,
  );
  expect(isSolanaError(failure, SOLANA_ERROR__INSTRUCTION_ERROR__CUSTOM)).toBe(true);
  expect((await rpc.getBalance(alice.address).send()).value).toBe(10n * SOL - 5_000n);
});

test('a wallet of the sandbox sends to an account that kit reads and watches', async () => {
  const watcher = await generateKeyPairSigner();
  const closed = new AbortController();
  const notifications = await rpcSubscriptions
    .accountNotifications(watcher.address, { commitment: 'confirmed' })
    .subscribe({ abortSignal: closed.signal });
  const first = notifications[Symbol.asyncIterator]().next();
  const wallet = await sandbox.call('createWallet', { body: { chain_type: 'solana' } });
  await sandbox.faucet(wallet.address, { chain: 'solana', amount: '2' });
  await sandbox.call('transferFromWallet', {
    path: { wallet_id: wallet.id },
    body: {
      source: { asset: 'sol', chain: 'solana', amount: '1' },
      destination: { address: watcher.address },
    },
  });
  expect((await first).value).toMatchObject({ value: { lamports: SOL } });
  closed.abort();
  expect((await rpc.getAccountInfo(watcher.address, { encoding: 'base64' }).send()).value).toMatchObject({
    ...{ lamports: SOL, executable: false, space: 0n, data: ['', 'base64'] },
    ...{ owner: '11111111111111111111111111111111', rentEpoch: 2n ** 64n - 1n },
  });
});
