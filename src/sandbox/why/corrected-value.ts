import { assetsOf } from '../../engine/assets/known-assets.ts';
import { chainNamed, chainOfCaip2, type KnownChain, knownChains } from '../../engine/assets/known-chains.ts';
import type { BodyChange, RefusedRequest, Why } from '../../ports/refusals.ts';
import type { BodyShape, BodyShapes } from '../generated/validate-function.ts';
import { nearestName } from './nearest.ts';
import { because, cut, listOf, problem, quote, repeat } from './problem.ts';

/** A value in a body that the API document does not allow. */
interface WrongValue {
  /** A JSON pointer into the body. */
  readonly pointer: string;
  /** The name of the field. */
  readonly name: string;
  readonly given: unknown;
  /** The message of the validator. */
  readonly message: string;
}

/** The value that the caller probably meant, and how a hint says so. */
export interface Correction {
  /** Continues a sentence after "expected". Undefined if the message of the validator says it well. */
  readonly expected?: string;
  readonly came: string;
  /** One whole sentence. */
  readonly next: string;
  /** Undefined if there are several possibilities. */
  readonly value?: unknown;
}

/** Longer strings are not quoted, because they may be secret. */
const SHOWN_VALUE = 80;

/** The number of digits of 2^256, the longest number of Ethereum. */
const MAX_DIGITS = 78;

const CHAIN_EXAMPLE = 'a CAIP-2 id, such as `eip155:8453`';

/** Returns the correction of a value, or undefined if nothing is known about it. */
export function correctedValue(
  wrong: WrongValue,
  kinds: readonly string[] | undefined,
): Correction | undefined {
  const { given, message, name } = wrong;
  if (typeof given === 'number') return numberAsText(given, wrong);
  if (typeof given !== 'string' || given === '' || given.length > SHOWN_VALUE) return undefined;
  if (name === 'caip2') return chainId(given);
  if (message.includes('pattern ^0x') && message.includes('must be an integer'))
    return hexNumber(given, name);
  if (message === 'must be an integer' || message === 'must be a number') return textAsNumber(given);
  if (message.startsWith('unknown value ')) return kindOfObject(given, name, kinds ?? []);
  return allowedValue(given, message);
}

/** Returns the values of the field that tells apart the kinds of an object, or undefined if the field is another one. */
export function kindsAt(
  names: readonly string[],
  operation: string | undefined,
  shapes: BodyShapes,
): readonly string[] | undefined {
  const follow = (shape: BodyShape | undefined): BodyShape | undefined =>
    shape?.ref === undefined ? shape : shapes.named[shape.ref];
  let shape = follow(shapes.operations[operation ?? '']);
  for (const name of names.slice(0, -1)) shape = follow(shape?.items ?? shape?.properties?.[name]);
  return shape?.kinds?.field === names.at(-1) ? shape?.kinds?.values : undefined;
}

/** Returns the CAIP-2 id of the chain that a transaction without `caip2` names in its `chain_id`. */
export function chainOfTransaction(body: unknown): string | undefined {
  const { params } = (body ?? {}) as { params?: { transaction?: { chain_id?: unknown } } };
  const given = params?.transaction?.chain_id;
  if (typeof given !== 'number' && typeof given !== 'string') return undefined;
  const id = Number(given);
  return Number.isSafeInteger(id) && id > 0 ? `eip155:${id}` : undefined;
}

/** Returns the chain that a text names, exactly or nearly, by its name, its CAIP-2 id or its EIP-155 number. */
export function chainMeantBy(text: string): KnownChain | undefined {
  const exact = chainNamed(text) ?? chainOfCaip2(text) ?? chainOfCaip2(`eip155:${text}`);
  if (exact !== undefined) return exact;
  const known = [...knownChains({ isTestnet: false }), ...knownChains({ isTestnet: true })];
  const name = nearestName(
    text,
    known.map((chain) => chain.name),
  );
  return name === undefined ? undefined : chainNamed(name);
}

function chainId(given: string): Correction | undefined {
  const chain = chainMeantBy(given);
  if (chain === undefined) return undefined;
  const { caip2, name } = chain;
  return {
    ...{ expected: CHAIN_EXAMPLE, came: quote(given), value: caip2 },
    next: `Did you mean \`${caip2}\`, the chain \`${name}\`?`,
  };
}

/** Corrects a decimal text where hex or an integer is expected. */
function hexNumber(given: string, name: string): Correction | undefined {
  const expected = 'hex that begins with `0x`, or an integer';
  const came = quote(given);
  if (isDigits(given) && given.length <= MAX_DIGITS) {
    const value = `0x${BigInt(given).toString(16)}`;
    return { expected, came, value, next: `Did you mean \`${value}\`, the same number in hex?` };
  }
  const wei = name === 'value' ? weiOf(given) : undefined;
  if (wei === undefined) return undefined;
  const value = `0x${wei.toString(16)}`;
  return {
    ...{ expected: `${expected}, in wei`, came, value },
    next: `Did you mean \`${value}\`, which is ${given} ETH in wei?`,
  };
}

const ETHER_DECIMALS = 18;

function weiOf(given: string): bigint | undefined {
  const [whole = '', fraction = '', ...more] = given.split('.');
  if (more.length > 0 || !isDigits(whole) || !isDigits(fraction) || fraction.length > ETHER_DECIMALS)
    return undefined;
  return BigInt(whole + fraction.padEnd(ETHER_DECIMALS, '0'));
}

function isDigits(text: string): boolean {
  return /^\d+$/.test(text);
}

/** Corrects a number where the decimal text of an amount is expected. A number elsewhere may stand for anything. */
function numberAsText(given: number, { name, message }: WrongValue): Correction | undefined {
  const isAmount = ['amount', 'percent', 'value'].some((each) => name.endsWith(each));
  const value = String(given);
  // A number such as 1e21 has another form as text.
  if (message !== 'must be a string' || !isAmount || given < 0 || value.includes('e')) return undefined;
  return {
    expected: 'a string with a decimal number',
    came: `the number ${value}`,
    next: `Did you mean \`"${value}"\`, in quotation marks?`,
    value,
  };
}

function textAsNumber(given: string): Correction | undefined {
  const value = Number(given);
  if (!isDigits(given) || !Number.isSafeInteger(value)) return undefined;
  return {
    came: `the string \`"${given}"\``,
    next: `Did you mean \`${value}\`, without quotation marks?`,
    value,
  };
}

/** Corrects the field that tells apart the kinds of an object. The message does not list its values. */
function kindOfObject(given: string, name: string, kinds: readonly string[]): Correction | undefined {
  if (kinds.length === 0) return undefined;
  const value = nearestName(given, kinds);
  if (value !== undefined) {
    const expected = `a \`${name}\` of the contract`;
    return { expected, came: quote(given), next: `Did you mean \`${value}\`?`, value };
  }
  const shown = kinds.slice(0, MAX_LISTED);
  const more = kinds.length - shown.length;
  return {
    expected: `one of ${listOf(more > 0 ? [...shown, `${more} more`] : shown)}`,
    came: quote(given),
    next: `Change \`${name}\`; /docs lists them all.`,
  };
}

/** Corrects a value of an enumeration, by its spelling, its beginning, or the chain that it names. */
function allowedValue(given: string, message: string): Correction | undefined {
  const allowed = message
    .split(', or ')
    .flatMap(
      (said) =>
        /^must be one of (.+)$/.exec(said)?.[1]?.split(', ') ?? /^must be (\S+)$/.exec(said)?.[1] ?? [],
    );
  const came = quote(given);
  const chain = chainNamed(given.toLowerCase()) ?? chainOfCaip2(given);
  if (chain !== undefined && !allowed.includes(chain.name) && allowed.includes(chain.chainType)) {
    const value = chain.chainType;
    return {
      came,
      value,
      next: `\`${cut(given, 40)}\` is a chain of \`${value}\`: did you mean \`${value}\`?`,
    };
  }
  const value = nearestName(given, allowed);
  if (value !== undefined) return { came, value, next: `Did you mean \`${value}\`?` };
  const longer = allowed.filter(
    (each) => given.length >= MIN_BEGINNING && each.startsWith(given.toLowerCase()),
  );
  if (longer.length === 0 || longer.length > MAX_LONGER) return undefined;
  const names = longer.map((each) => `\`${each}\``);
  return {
    ...{ came, next: `Did you mean ${listOf(names, 'or')}?` },
    ...(longer.length === 1 ? { value: longer[0] } : {}),
  };
}

const MAX_LISTED = 12;
const MIN_BEGINNING = 3;
const MAX_LONGER = 3;

/** Members of objects whose values show their name. */
const knownBeginnings: Readonly<Record<string, string>> = {
  user_id: 'did:',
  // The DER of a P-256 key in base64. Source: RFC 5480.
  public_key: 'MFkwEwYHKoZIzj0',
};

/**
 * Returns the member of an object that was meant as one of the alternatives of a union, by the form of its value or by
 * its name.
 */
export function meantAlternative(
  sent: Readonly<Record<string, unknown>>,
  wanted: readonly string[],
): { readonly from: string; readonly to: string } | undefined {
  for (const [from, value] of Object.entries(sent)) {
    const to = wanted.find(
      (name) => typeof value === 'string' && value.startsWith(knownBeginnings[name] ?? '\0'),
    );
    if (to !== undefined) return { from, to };
  }
  for (const from of Object.keys(sent)) {
    const to = nearestName(from, wanted) ?? wanted.find((name) => name.split('_').includes(from));
    if (to !== undefined) return { from, to };
  }
  return undefined;
}

/** Returns the change of the body that makes a correction. */
export function changeOf(pointer: string, { value }: Correction): BodyChange | undefined {
  return value === undefined ? undefined : { op: 'replace', path: pointer, value };
}

/** The messages about chains and assets, with the pointer of the field. */
const unknownAsset = /^(\/[\w/]+): no asset `([^`]{1,80})` is known on `([^`]{1,40})`$/;
const unknownChain = /^(\/[\w/]+): the chain `([^`]{1,80})` is not supported$/;
const foreignChain = /^(\/[\w/]+): `([^`]{1,80})` is not a chain of (\S{1,20}) wallets$/;

/** Explains a chain or an asset that the server does not know, or that the wallet cannot use. */
export function whyUnsupported({ code, message, path }: RefusedRequest): Why | undefined {
  if (code !== 'not_supported') return undefined;
  const [, assetAt, asset = '', on = ''] = unknownAsset.exec(message) ?? [];
  const chain = chainNamed(on) ?? chainOfCaip2(on);
  if (assetAt !== undefined && chain !== undefined) {
    const known = assetsOf(chain).map((each) => each.asset);
    return explained(assetAt, asset, {
      expected: `an asset of \`${on}\` (${listOf(known.map((each) => `\`${each}\``))})`,
      ...nextTo(nearestName(asset, known), 'asset'),
    });
  }
  const [, chainAt, name = ''] = unknownChain.exec(message) ?? [];
  if (chainAt !== undefined) {
    const isId = chainAt.endsWith('/caip2');
    const meant = chainMeantBy(name);
    return explained(chainAt, name, {
      expected: isId ? CHAIN_EXAMPLE : 'the name of a chain, such as `base`',
      ...nextTo(isId ? meant?.caip2 : meant?.name, 'chain'),
    });
  }
  const [, foreignAt, foreign = '', type = ''] = foreignChain.exec(message) ?? [];
  if (foreignAt === undefined) return undefined;
  const names = knownChains({ isTestnet: false, chainType: type }).map((each) =>
    foreignAt.endsWith('/caip2') ? each.caip2 : each.name,
  );
  if (names.length === 0) return undefined;
  const shown = names.slice(0, MAX_LISTED).map((each) => `\`${each}\``);
  const more = names.length - shown.length;
  return explained(foreignAt, foreign, {
    expected: `a chain of ${type} wallets (${listOf(more > 0 ? [...shown, `${more} more`] : shown)})`,
    next: 'Choose one of them, or a wallet of the other chain type.',
  });

  function explained(pointer: string, given: string, correction: Omit<Correction, 'came'>): Why {
    const found = problem({
      ...{
        ...correction,
        subject: `\`${pointer}\` in the body`,
        expected: correction.expected ?? 'another value',
      },
      ...{ came: quote(given), at: { in: 'body', pointer } },
    });
    const { value } = correction;
    if (value === undefined)
      return because('validation', [found], { evidence: { in: 'body', pointer, path } });
    const body: BodyChange[] = [{ op: 'replace', path: pointer, value }];
    return because('validation', [found], {
      evidence: { in: 'body', pointer, path, nearest: value },
      repairs: [
        repeat(`Send again: \`${pointer.split('/').at(-1)}\` is \`${String(value)}\``, { changes: { body } }),
      ],
    });
  }
}

function nextTo(value: string | undefined, noun: string): { readonly next: string; readonly value?: string } {
  return value === undefined
    ? { next: `Choose another ${noun}.` }
    : { next: `Did you mean \`${value}\`?`, value };
}
