import { control } from './control.ts';
import { hrefOf } from './routes.ts';

/** The result of an action in words, and the page that shows it. */
interface Done {
  readonly text: string;
  readonly href?: string;
}

export interface QuickAction {
  readonly title: string;
  readonly run: () => Promise<Done>;
}

const HOUR_MS = 3_600_000;

async function send(
  operation: string,
  body: object,
  path: object,
  signAs: readonly 'alice'[],
): Promise<Done> {
  const sent = await control('sendRequest', {
    body: { operation, body, path: path as Record<string, string>, sign_as: [...signAs] },
  });
  const { request_id: id, status } = sent;
  const text = `${operation}: ${status}`;
  return id === null ? { text } : { text, href: hrefOf('requests', [id]) };
}

async function advance(ms: number, words: string): Promise<Done> {
  await control('setClock', { body: { advance_ms: ms } });
  return { text: `The clock is ${words} ahead` };
}

/** The actions that Home and the command palette offer. */
export const quickActions: readonly QuickAction[] = [
  {
    title: 'Create a wallet',
    run: async () => {
      const sent = await control('sendRequest', {
        body: { operation: 'createWallet', body: { chain_type: 'ethereum' }, path: {} },
      });
      const { id } = sent.body as { id: string };
      return { text: 'Wallet created', href: hrefOf('wallets', [id]) };
    },
  },
  {
    title: 'Sign a message as Alice',
    run: () =>
      send(
        'walletRpc',
        { method: 'personal_sign', params: { message: 'Hello', encoding: 'utf-8' } },
        { wallet_id: 'ext_wal_alice' },
        ['alice'],
      ),
  },
  {
    title: 'Sign without Alice, to see a refusal',
    run: () =>
      send(
        'walletRpc',
        { method: 'personal_sign', params: { message: 'Hello', encoding: 'utf-8' } },
        { wallet_id: 'ext_wal_alice' },
        [],
      ),
  },
  {
    title: 'Run the scenario policy-denied',
    run: async () => {
      await control('runScenario', { path: { name: 'policy-denied' } });
      return { text: 'The scenario has run', href: hrefOf('requests') };
    },
  },
  { title: 'Advance the clock by an hour', run: () => advance(HOUR_MS, 'an hour') },
  { title: 'Advance the clock by a day', run: () => advance(24 * HOUR_MS, 'a day') },
  {
    title: 'Mine a block on every chain',
    run: async () => {
      const { data } = await control('mineBlocks', { body: {} });
      return { text: `Block mined on ${data.length} chains` };
    },
  },
];
