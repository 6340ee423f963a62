import {
  address,
  appendTransactionMessageInstructions,
  blockhash,
  compileTransaction,
  createKeyPairSignerFromPrivateKeyBytes,
  createTransactionMessage,
  getBase64EncodedWireTransaction,
  type Instruction,
  pipe,
  setTransactionMessageComputeUnitLimit,
  setTransactionMessageFeePayer,
  setTransactionMessageHeapSize,
  setTransactionMessageLifetimeUsingBlockhash,
  setTransactionMessagePriorityFeeLamports,
  signTransaction,
} from '@solana/kit';
import { getTransferSolInstruction } from '@solana-program/system';
import { describe, expect, test } from 'vitest';
import {
  decodeSolanaMessageUnits,
  decodeSolanaUnits,
} from '../../../src/engine/actions/decode-solana-units.ts';
import { base64ToBytes, bytesToBase64, concatBytes } from '../../../src/engine/crypto/encoding.ts';
import { compilePolicy } from '../../../src/engine/policy/compile.ts';
import { allowsAction } from '../../../src/engine/policy/evaluate.ts';
import { signOffline } from '../../../src/engine/signing/sign-with-key.ts';
import { decodeSolanaTransaction, withFeePayer } from '../../../src/engine/signing/solana/wire.ts';

// Transactions of version 1 (SIMD-0385). The judge is @solana/kit.

const secret = new Uint8Array(32).fill(7);
const signer = await createKeyPairSignerFromPrivateKeyBytes(secret);
const payer = await createKeyPairSignerFromPrivateKeyBytes(new Uint8Array(32).fill(8));
const to = address('2xNweLHLqrbx4zo1waDvgWJHgsUpPj8Y8icbAFeR4a8i');
const recent = blockhash('4uQeVj5tqViQh7yWWGStvkEG1Zmhx6uasJtWCJziofM');
const sign = async (transaction: string) =>
  (await signOffline('signTransaction', secret, { transaction, encoding: 'base64' })).signed_transaction;

const transfer = (lamports: number) =>
  getTransferSolInstruction({ source: signer, destination: to, amount: BigInt(lamports) }) as Instruction;
const memo = (length: number): Instruction => ({
  programAddress: address('MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr'),
  data: new Uint8Array(length).fill(0x61),
});

function build(instructions: readonly Instruction[], feePayer = signer.address) {
  return pipe(
    createTransactionMessage({ version: 1 }),
    (message) => setTransactionMessageFeePayer(feePayer, message),
    (message) =>
      setTransactionMessageLifetimeUsingBlockhash({ blockhash: recent, lastValidBlockHeight: 1n }, message),
    (message) => appendTransactionMessageInstructions(instructions, message),
  );
}

type Message = ReturnType<typeof build>;
const wireOf = (message: Message) => getBase64EncodedWireTransaction(compileTransaction(message));

test('the transfer of the report gets the signature of kit', async () => {
  const message =
    'gQEAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAED6kpsY+KcUgq+9VB7Ey7F+ZVHdq6+vnuSQh7qaRRG0iwTmPYs' +
    'bRpFfFG6aktfPb0vafypMhYhjciZfkFr0X2TygAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAgIMAAABAgAAAAUAAAAAAAAA';
  const wire = concatBytes(base64ToBytes(message), new Uint8Array(64));
  const signature =
    'ft8HkgRoyxp6Eki8ASkn0LWzh/dBvfNcgyTyk8fQfM1oxbtsEDEyZTNr8btpgHEExL7IE2d13FAxNxP0eSlqBw==';
  expect(await sign(bytesToBase64(wire))).toBe(
    bytesToBase64(concatBytes(base64ToBytes(message), base64ToBytes(signature))),
  );
});

const messages: [string, Message][] = [
  ['one transfer', build([transfer(5)])],
  ['several instructions', build([transfer(5), memo(10), transfer(6)])],
  ['no instruction', build([])],
  ['a memo larger than a packet', build([transfer(5), memo(3_500)])],
  ['a priority fee', setTransactionMessagePriorityFeeLamports(9n, build([transfer(5)]))],
  [
    'a compute limit and a heap',
    setTransactionMessageHeapSize(65_536, setTransactionMessageComputeUnitLimit(7, build([transfer(5)]))),
  ],
];

describe.each(messages)('%s', (_, message) => {
  test('is signed as kit signs it', async () => {
    const compiled = compileTransaction(message);
    const theirs = getBase64EncodedWireTransaction(
      await signTransaction([signer.keyPair], compiled as never),
    );
    expect(await sign(wireOf(message))).toBe(theirs);
  });

  test('with a fee payer has the message that kit compiles', () => {
    const ours = withFeePayer(base64ToBytes(wireOf(message)), payer.address);
    const reference = build(message.instructions, payer.address);
    const theirs = compileTransaction({
      ...reference,
      ...('config' in message ? { config: message.config } : {}),
    } as Message);
    const decoded = decodeSolanaTransaction(ours);
    expect(decoded.signatures).toHaveLength(2);
    if (message.instructions.some((each) => each.accounts?.length)) {
      expect(bytesToBase64(decoded.message)).toBe(bytesToBase64(new Uint8Array(theirs.messageBytes)));
    }
  });
});

test('policies read each instruction, also of the message alone', () => {
  const wire = wireOf(build([transfer(5), memo(3)]));
  const units = decodeSolanaUnits(wire);
  expect(units).toMatchObject([
    {
      solanaInstruction: {
        program: 'system',
        name: 'Transfer',
        fields: { from: signer.address, to, lamports: 5n },
      },
    },
    { solanaInstruction: { program: 'other', programId: memo(0).programAddress } },
  ]);
  expect(decodeSolanaMessageUnits(decodeSolanaTransaction(base64ToBytes(wire)).message)).toEqual(units);
});

test('a message of version 1 that does not decode is no message for policies', () => {
  const { message } = decodeSolanaTransaction(base64ToBytes(wireOf(build([transfer(5)]))));
  const longer = concatBytes(message, Uint8Array.of(0));
  expect(decodeSolanaMessageUnits(longer)).toMatchObject([{ undecodable: expect.any(String) }]);
});

describe('refuses', () => {
  const wire = base64ToBytes(wireOf(setTransactionMessageHeapSize(65_536, build([transfer(5)]))));
  const changed = (at: number, ...bytes: number[]) => {
    const copy = wire.slice();
    copy.set(bytes, at);
    return copy;
  };
  const heapAt = 42 + 3 * 32;
  test.each([
    [
      'a version of later',
      changed(0, 0x82),
      'expected a legacy transaction, or version 0 or 1, got version 2',
    ],
    ['13 signatures', changed(1, 13), 'expected at most 12 signatures, got 13'],
    ['65 accounts', changed(41, 65), 'expected at most 64 accounts, got 65'],
    ['65 instructions', changed(40, 65), 'expected at most 64 instructions, got 65'],
    ['half a priority fee', changed(4, 1), 'expected both bits of the priority fee'],
    ['a configuration of later', changed(4, 32), 'expected a known configuration, got mask 32'],
    [
      'a heap that is too small',
      changed(heapAt, 0, 4, 0, 0),
      'expected a heap of 32 to 256 KiB, got 1024 bytes',
    ],
    ['a read-only fee payer', changed(2, 1), 'expected a header that matches the account keys'],
    ['bytes after the signatures', concatBytes(wire, Uint8Array.of(0)), /^expected the end at offset/],
    ['more than 4,096 bytes', concatBytes(wire, new Uint8Array(4_096)), /^expected at most 4096 bytes/],
  ])('refuses: %s', (_, bytes, message) => {
    expect(() => decodeSolanaTransaction(bytes)).toThrow(message);
  });
});

test('a legacy transaction of more than a packet is refused', () => {
  const legacy = pipe(
    createTransactionMessage({ version: 'legacy' }),
    (message) => setTransactionMessageFeePayer(signer.address, message),
    (message) =>
      setTransactionMessageLifetimeUsingBlockhash({ blockhash: recent, lastValidBlockHeight: 1n }, message),
  );
  const sized = (length: number) => {
    const compiled = compileTransaction(appendTransactionMessageInstructions([memo(length)], legacy));
    return base64ToBytes(getBase64EncodedWireTransaction(compiled));
  };
  const most = 1_232 - (sized(200).length - 200);
  expect(sized(most)).toHaveLength(1_232);
  expect(decodeSolanaTransaction(sized(most)).version).toBe('legacy');
  expect(() => decodeSolanaTransaction(sized(most + 1))).toThrow('expected at most 1232 bytes, got 1233');
});

test('a priority fee needs the rule that it needs in version 0', () => {
  const budget = 'ComputeBudget111111111111111111111111111111';
  const toFriend = { field_source: 'solana_system_program_instruction', field: 'Transfer.to', value: to };
  const ofBudget = { field_source: 'solana_program_instruction', field: 'programId', value: budget };
  const policyOf = (...rules: readonly (readonly ['ALLOW' | 'DENY', object?])[]) =>
    compilePolicy({
      ...{ id: 'policy', chain_type: 'solana' },
      rules: rules.map(([action, condition], index) => ({
        ...{ id: String(index), name: 'rule', method: 'signTransaction', action },
        conditions: (condition === undefined ? [] : [{ operator: 'eq', ...condition }]) as never,
      })),
    });
  const facts = { nowMs: 0, inConditionSet: () => undefined, aggregation: () => undefined };
  const payment = build([transfer(5)]);
  const dear = setTransactionMessagePriorityFeeLamports(10n ** 9n, payment);
  const version0 = pipe(
    createTransactionMessage({ version: 0 }),
    (message) => setTransactionMessageFeePayer(signer.address, message),
    (message) =>
      setTransactionMessageLifetimeUsingBlockhash({ blockhash: recent, lastValidBlockHeight: 1n }, message),
    // SetComputeUnitPrice
    (message) =>
      appendTransactionMessageInstructions(
        [
          transfer(5),
          { programAddress: address(budget), data: Uint8Array.of(3, 255, 255, 255, 255, 255, 0, 0, 0) },
        ],
        message,
      ),
  );
  const dear0 = getBase64EncodedWireTransaction(compileTransaction(version0));
  const allows = (policy: ReturnType<typeof policyOf>, transaction: string) =>
    allowsAction(policy, { method: 'signTransaction', units: decodeSolanaUnits(transaction) }, facts);
  for (const [policy, ...expected] of [
    [policyOf(['ALLOW', toFriend]), true, false],
    [policyOf(['ALLOW', toFriend], ['ALLOW', ofBudget]), true, true],
    [policyOf(['ALLOW'], ['DENY', ofBudget]), true, false],
    [policyOf(['ALLOW'], ['DENY', { ...toFriend, value: signer.address }]), true, true],
  ] as const) {
    expect([allows(policy, wireOf(payment)), allows(policy, dear0)]).toEqual(expected);
    expect([allows(policy, wireOf(payment)), allows(policy, wireOf(dear))]).toEqual(expected);
  }
});
