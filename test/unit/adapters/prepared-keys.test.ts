import { setTimeout as pause } from 'node:timers/promises';
import { entropyToMnemonic } from '@scure/bip39';
import { wordlist } from '@scure/bip39/wordlists/english.js';
import { mnemonicToAccount } from 'viem/accounts';
import { expect, test } from 'vitest';
import { seededEntropy, systemEntropy } from '../../../src/adapters/runtime.ts';
import { newWalletKey } from '../../../src/engine/signing/wallet-key.ts';
import {
  type PhraseEntropy,
  preparedKeys,
  randomPhrases,
  seededPhrases,
} from '../../../src/keys/sandbox-keys.ts';

/** Phrases that remember what was looked at in advance. */
function watched(phrases: PhraseEntropy) {
  const peeked: Uint8Array[] = [];
  const watching: PhraseEntropy = {
    ...phrases,
    peek(index) {
      const entropy = phrases.peek(index);
      // Stale keys are found by looking at the next one.
      if (index === peeked.length) peeked.push(entropy);
      return entropy;
    },
  };
  const untilPrepared = async (count: number): Promise<void> => {
    while (peeked.length < count) await pause(2);
    // The last one is being derived.
    await pause(30);
  };
  return { ...watching, peeked, untilPrepared };
}

const addressOf = (entropy: Uint8Array): string =>
  mnemonicToAccount(entropyToMnemonic(entropy, wordlist)).address;

test('each wallet has the key of the next phrase of the stream, prepared or not', async () => {
  const alone = seededEntropy('demo');
  const expected = Array.from({ length: 6 }, () => addressOf(alone.bytes(16)));
  const phrases = watched(seededPhrases(seededEntropy('demo')));
  const keys = preparedKeys(phrases, { count: 4, quietMs: 1 });
  await phrases.untilPrepared(4);
  const drawn = await Promise.all(expected.map(() => keys.draw('ethereum')));
  keys.close();
  expect(drawn.map(({ address }) => address)).toEqual(expected);
  // What was prepared was used: the entropy is wiped once the key is drawn.
  expect(phrases.peeked.slice(0, 4).every(isWiped)).toBe(true);
});

test('a key that was prepared for one chain type is drawn for another', async () => {
  const phrases = watched(seededPhrases(seededEntropy('demo')));
  const keys = preparedKeys(phrases, { count: 3, quietMs: 1 });
  await phrases.untilPrepared(3);
  const alone = seededEntropy('demo');
  for (const chainType of ['solana', 'ethereum', 'xrpl'] as const) {
    expect(await keys.draw(chainType)).toEqual(await newWalletKey(chainType, alone.bytes(16)));
  }
  keys.close();
});

test('when the stream is moved, what was prepared for other positions is not used', async () => {
  const stream = seededEntropy('demo');
  const phrases = watched(seededPhrases(stream));
  const keys = preparedKeys(phrases, { count: 4, quietMs: 1 });
  const start = stream.position();
  await phrases.untilPrepared(4);
  expect(stream.position()).toEqual(start);
  const draw = async (): Promise<string> => (await keys.draw('ethereum')).address;
  const [first, second] = [await draw(), await draw()];
  const alone = seededEntropy('demo');
  expect([first, second]).toEqual([addressOf(alone.bytes(16)), addressOf(alone.bytes(16))]);
  stream.goTo(start);
  expect([await draw(), await draw()]).toEqual([first, second]);
  stream.goTo({ seed: 'another', drawn: 48 });
  const other = seededEntropy('another');
  other.goTo({ seed: 'another', drawn: 48 });
  expect(await draw()).toBe(addressOf(other.bytes(16)));
  expect(stream.position()).toEqual({ seed: 'another', drawn: 64 });
  keys.close();
});

test('random phrases are each drawn once, in the order in which they were looked at', () => {
  let count = 0;
  const phrases = randomPhrases({ bytes: (length) => new Uint8Array(length).fill(++count) });
  const firstOf = (bytes: Uint8Array): number | undefined => bytes[0];
  expect(firstOf(phrases.peek(1))).toBe(2);
  expect([1, 2, 3, 4].map(() => firstOf(phrases.draw()))).toEqual([1, 2, 3, 4]);
  expect(firstOf(phrases.peek(0))).toBe(5);
  phrases.wipe();
  expect(firstOf(phrases.draw())).toBe(6);
});

test('nothing is prepared beyond the limit, nor keeps the process alive, and closing wipes everything', async () => {
  const before = process.getActiveResourcesInfo();
  const phrases = watched(randomPhrases(systemEntropy));
  const keys = preparedKeys(phrases, { count: 3, quietMs: 1 });
  expect(process.getActiveResourcesInfo()).toEqual(before);
  await phrases.untilPrepared(3);
  await pause(50);
  expect(phrases.peeked).toHaveLength(3);
  expect(phrases.peeked.some(isWiped)).toBe(false);
  keys.close();
  await pause(10);
  expect(phrases.peeked.every(isWiped)).toBe(true);
  const { address } = await keys.draw('ethereum');
  expect(address).toMatch(/^0x/);
  await pause(20);
  expect(phrases.peeked).toHaveLength(3);
});

test('a process that is busy prepares nothing', async () => {
  const phrases = watched(randomPhrases(systemEntropy));
  const keys = preparedKeys(phrases, { count: 3, quietMs: 20 });
  const endMs = performance.now() + 200;
  while (performance.now() < endMs) {
    const untilMs = performance.now() + 5;
    while (performance.now() < untilMs);
    await new Promise(setImmediate);
  }
  expect(phrases.peeked).toHaveLength(0);
  keys.close();
});

function isWiped(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0);
}
