import { decimalText, readDecimal, round } from '../../engine/assets/decimal.ts';
import { chainOfCaip2 } from '../../engine/assets/known-chains.ts';

/** The meaning of a color: success, needs attention, failure, in progress, or none. */
export type Tone = 'good' | 'warn' | 'bad' | 'info' | 'none';

/** Chains whose names are not the words of their API name. */
const names: Readonly<Record<string, string>> = { bsc: 'BNB Chain', zksync_era: 'ZKsync Era' };

/** The colors of chains by name (a test network has its main network's color) and of chain types. */
const colors: Readonly<Record<string, string>> = {
  ethereum: '#5b6ee1',
  sepolia: '#5b6ee1',
  optimism: '#e0263c',
  bsc: '#a97a06',
  unichain: '#d0147c',
  polygon: '#7b3fe4',
  base: '#1453e6',
  arbitrum: '#1b6fb5',
  avalanche: '#c93536',
  solana: '#7d37e0',
  tron: '#c8102e',
  bitcoin: '#b8650a',
  cosmos: '#4a4e7c',
  stellar: '#3d5a80',
  sui: '#2a76c9',
  aptos: '#1f7a6d',
  movement: '#8a6d00',
  ton: '#0a7ab8',
  starknet: '#6a3fa0',
  near: '#2d7d46',
  spark: '#a14a00',
};
const OTHER_COLOR = '#56637a';

/**
 * Returns the name and the color of a chain, given by its CAIP-2 id, its API name or its type, such as
 * `eip155:8453`, `base` or `bitcoin-segwit`.
 */
export function chainOf(id: string): { readonly name: string; readonly color: string } {
  const known = chainOfCaip2(id)?.name ?? id;
  const name = names[known] ?? (known.includes(':') ? known : inWords(known.replaceAll('-', '_')));
  const [family = ''] = known.split(/[_-]/);
  return { name, color: colors[known] ?? colors[family] ?? OTHER_COLOR };
}

/** Shortens an id, a hash, a key or an address to its first and last characters. */
export function shortened(text: string): string {
  return text.length <= 14 ? text : `${text.slice(0, 6)}…${text.slice(-4)}`;
}

/** The resource that a row of requests or events is about, and its wallet. */
interface About {
  readonly subject: { readonly type: string; readonly id: string; readonly name: string | null } | null;
  readonly wallet: { readonly name: string | null; readonly address: string } | null;
}

/** Returns the name of a wallet, or its shortened address if it has none. */
export function walletText({ name, address }: NonNullable<About['wallet']>): string {
  return name ?? shortened(address);
}

/** Describes what a row is about: `Treasury`, `Treasury, transaction fmfdj6…38zc` or `user alice@example.com`. */
export function subjectText({ subject, wallet }: About): string {
  const of = wallet === null ? [] : [walletText(wallet)];
  const isWallet = subject?.type === 'wallet';
  if (subject === null || (isWallet && wallet !== null)) return of.join('');
  const kind = subject.type.replaceAll('_', ' ');
  return [...of, `${kind} ${subject.name ?? shortened(subject.id)}`].join(', ');
}

/** Puts separators between the thousands of a decimal, such as `1,493.27`. */
export function groupedText(decimal: string): string {
  const [whole = '', ...part] = decimal.split('.');
  return [BigInt(whole).toLocaleString('en'), ...part].join('.');
}

/** Formats US dollars, such as `$1,234.50`. */
export function usdText(amount: string): string {
  const [whole = '0', part = ''] = amount.split('.');
  return `$${BigInt(whole).toLocaleString('en')}.${part.padEnd(2, '0').slice(0, 2)}`;
}

/** Turns an API name into words: `earn_deposit` becomes `Earn deposit`. The API's `broadcasted` is no English word. */
export function inWords(name: string): string {
  const words = name === 'broadcasted' ? 'broadcast' : name.replaceAll(/[_.]/g, ' ');
  return words === '' ? '' : words[0]!.toUpperCase() + words.slice(1);
}

const tones: Readonly<Record<string, Tone>> = {
  ...tonesOf(
    'good',
    'confirmed finalized succeeded success completed executed delivered enabled active approved verified allowed allow',
  ),
  ...tonesOf(
    'bad',
    'failed execution_reverted reverted provider_error rejected denied deny blocked canceled',
  ),
  ...tonesOf('bad', 'abandoned frozen disabled dropped returned'),
  ...tonesOf('warn', 'pending_authorization expired replaced retrying paused attention partially_completed'),
  ...tonesOf('warn', 'archived under_review incomplete'),
  ...tonesOf(
    'info',
    'pending broadcasted processing queued submitted in_progress open still_pending running',
  ),
};

function tonesOf(tone: Tone, words: string): Record<string, Tone> {
  return Object.fromEntries(words.split(' ').map((word) => [word, tone]));
}

/** Returns the tone in which a status is shown. */
export function toneOf(status: string): Tone {
  return tones[status.toLowerCase()] ?? 'none';
}

/** Returns the tone in which the status of a response is shown. Status 0 means that there was no response. */
export function toneOfHttp(status: number): Tone {
  if (status === 0 || status >= 500) return 'bad';
  if (status >= 400) return 'warn';
  return 'good';
}

const MAX_DECIMALS = 6;
/** The decimals of an amount of 1,000 or more. */
const FEW_DECIMALS = 2;

/** Formats a decimal amount for a list, such as `100,000`, `1,493.27` or `0.000011`. */
export function shortAmount(amount: string): string {
  const decimal = readDecimal(amount);
  if (decimal === undefined) return amount;
  const isLarge = decimal.digits >= 1000n * 10n ** BigInt(decimal.scale);
  const rounded = round(decimal, isLarge ? FEW_DECIMALS : MAX_DECIMALS);
  if (rounded.digits === 0n && decimal.digits > 0n) return '<0.000001';
  return groupedText(decimalText(rounded));
}
