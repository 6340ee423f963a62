import type { ExecuteWalletSwapRequest } from '../../../generated/schemas.ts';
import { readSwapTerms, type SwapTerms, swapAction } from '../../actions/swap-terms.ts';
import { equalBytes } from '../../crypto/encoding.ts';
import type { BatchCall } from '../../signing/ethereum/batch-executor.ts';
import {
  type AbiValue,
  decodeTokenCall,
  swapRouter,
  wrappedNative,
} from '../../signing/ethereum/contract-calls.ts';
import {
  type BuildingSettings,
  type BuiltPart,
  NotComparableError,
  type RouterSettings,
} from './built-part.ts';
import { acceptedTerms, actionFields, areTexts, type Fields, hasOnly } from './completed-fields.ts';
import { signedCalls } from './match-calls.ts';
import type { SignTask } from './match-task.ts';

// Compares a swap by the chain's router with the body. The calls are read from the signing task. The signer has to
// trust the server about the price: the minimum that arrives for a fixed input, and the maximum that is spent for a
// fixed output.

interface SwapCall {
  readonly kind: 'approve' | 'swap' | 'wrap' | 'pass on';
  /** The maximum that the call spends or allows, in base units of the source asset. */
  readonly spent: bigint;
  /** The recipient of the proceeds; undefined if the call names none. */
  readonly recipient?: string;
}

interface Routed {
  readonly terms: SwapTerms;
  /** In lower case. */
  readonly router: string;
  readonly wrapped: string | undefined;
}

/** The maximum number of tokens in a path: two for a direct swap, three for a swap through the wrapped asset. */
const MAX_PATH_TOKENS = 3;

/**
 * Determines which part a task plays in the requested swap. Returns undefined if it plays none.
 *
 * @throws NotComparableError for a swap that no configured router makes.
 */
export function partOfSwap(
  body: Fields,
  task: SignTask,
  { chainType, swapRouters }: { readonly chainType: string } & Pick<BuildingSettings, 'swapRouters'>,
): BuiltPart | undefined {
  if (!isSwapRequest(body)) return undefined;
  const terms = acceptedTerms(() => readSwapTerms(chainType, body));
  if (terms === undefined) return undefined;
  const { source } = terms;
  const routed = routedBy(swapRouters.get(source.chain.caip2), terms);
  const signed = signedCalls(task);
  if (signed === undefined || signed.caip2 !== source.chain.caip2) return undefined;
  const calls = signed.calls.map((call) => readCall(routed, call));
  if (!calls.every((call) => call !== undefined) || !isOneSwap(calls)) return undefined;
  const spent = calls.reduce((most, call) => (call.spent > most ? call.spent : most), 0n);
  const recipients = terms.recipient === null ? calls.flatMap(({ recipient }) => recipient ?? []) : [];
  const account = signed.account === undefined ? [] : [signed.account];
  const kinds = calls.map(({ kind }) => kind);
  return {
    ...roleOf(kinds),
    accounts: [...account, ...recipients],
    action(address) {
      // An approval of zero does not reveal how much an exact output costs.
      const isSpentKnown = spent > 0n || terms.amountType === 'exact_input';
      const rawAmount = spent > 0n ? spent : terms.rawAmount;
      const decimals = source.asset?.decimals;
      const spending = { rawAmount, decimals: decimals ?? 0, recipient: terms.recipient ?? address };
      return {
        action: swapAction(body, terms, spending),
        // Only the chain knows the decimals of a token without a name.
        unknown: [
          ...(isSpentKnown && decimals !== undefined ? [] : ['amount', 'source.amount']),
          ...(isSpentKnown ? [] : ['raw_amount']),
        ],
      };
    },
  };
}

/** The wallet approves zero first, then the amount, so it makes two approvals. */
const APPROVALS = 2;

function roleOf(kinds: readonly SwapCall['kind'][]): Pick<BuiltPart, 'role' | 'atOnce'> {
  if (kinds.every((kind) => kind === 'approve')) return { role: 'prepares', atOnce: APPROVALS };
  // A batch that first wraps the asset gets the role of its last call, so that only one role pays the recipient.
  return { role: kinds.at(-1) === 'pass on' ? 'passes on' : 'pays', atOnce: 1 };
}

function routedBy(settings: RouterSettings | undefined, terms: SwapTerms): Routed {
  const { source, destination, appFeeBps } = terms;
  const { caip2 } = source.chain;
  if (destination.chain !== source.chain || appFeeBps > 0 || settings === undefined) {
    throw new NotComparableError(
      `the signer has no router for this swap on \`${caip2}\`; nothing was signed`,
    );
  }
  return { terms, router: settings.router.toLowerCase(), wrapped: settings.wrapped?.toLowerCase() };
}

const ofSwap: readonly string[] = [
  ...['source', 'destination', 'base_amount', 'amount_type', 'slippage_bps', 'fee_configuration'],
  ...actionFields,
];

/** Checks only the fields that this file reads. The server has validated the rest of the body. */
function isSwapRequest(body: Fields): body is Fields & ExecuteWalletSwapRequest {
  const { source, destination, base_amount: amount, amount_type: type, slippage_bps: slippage } = body;
  return (
    hasOnly(body, ofSwap) &&
    areTexts(source, ['caip2', 'asset_address']) &&
    areTexts(destination, ['asset_address'], ['caip2', 'destination_address']) &&
    typeof amount === 'string' &&
    /^[0-9]{1,78}$/.test(amount) &&
    [undefined, 'exact_input', 'exact_output'].includes(type as string) &&
    ['undefined', 'number'].includes(typeof slippage)
  );
}

/**
 * Returns whether the calls are some or all of the approvals and the swap, or the wrapping of the asset and its
 * payment to the recipient.
 */
function isOneSwap(calls: readonly SwapCall[]): boolean {
  const kinds = calls.map(({ kind }) => kind).join();
  return /^(approve(,approve)?(,swap)?|swap|wrap(,pass on)?|pass on)$/.test(kinds);
}

function readCall(routed: Routed, call: BatchCall): SwapCall | undefined {
  const { terms, router, wrapped } = routed;
  const to = call.to.toLowerCase();
  if (to === router) return readSwapCall(routed, call);
  const { source, destination } = terms;
  if (to === source.tokenAddress?.toLowerCase()) {
    const approval = readApproval(routed, call);
    if (approval !== undefined) return approval;
  }
  const isWrapping = source.tokenAddress === null && isSame(destination.tokenAddress, to);
  const isUnwrapping = destination.tokenAddress === null && isSame(source.tokenAddress, to);
  if (!isWrapping && !isUnwrapping) return undefined;
  if (wrapped === undefined) {
    const { caip2 } = source.chain;
    throw new NotComparableError(`the signer knows no wrapped asset on \`${caip2}\`; nothing was signed`);
  }
  if (to !== wrapped) return undefined;
  return isWrapping ? readWrapping(terms, call) : readUnwrapping(terms, call);
}

function isSame(token: string | null, to: string): boolean {
  return token?.toLowerCase() === to;
}

/** Reads an approval of exactly the amount that the router takes, or of zero. */
function readApproval({ terms, router }: Routed, { value, data }: BatchCall): SwapCall | undefined {
  const call = decodeTokenCall(data);
  if (call?.name !== 'approve' || call.spender !== router || value !== 0n) return undefined;
  const { amount: spent } = call;
  const isAsked = spent === 0n || terms.amountType === 'exact_output' || spent === terms.rawAmount;
  return isAsked ? { kind: 'approve', spent } : undefined;
}

/** Reads a call that wraps the asset for the wallet. For another recipient, a second call then passes it on. */
function readWrapping(terms: SwapTerms, { value, data }: BatchCall): SwapCall | undefined {
  const spent = terms.rawAmount;
  if (equalBytes(data, wrappedNative.encodeCall('deposit'))) {
    return value === spent ? { kind: 'wrap', spent } : undefined;
  }
  const call = decodeTokenCall(data);
  if (call?.name !== 'transfer' || call.amount !== spent || value !== 0n) return undefined;
  const isRecipient = terms.recipient !== null && isSame(terms.recipient, call.to);
  return isRecipient ? { kind: 'pass on', spent } : undefined;
}

/** Reads a call that unwraps the asset for the wallet itself. */
function readUnwrapping(terms: SwapTerms, { value, data }: BatchCall): SwapCall | undefined {
  const { rawAmount: spent } = terms;
  const isAsked = value === 0n && equalBytes(data, wrappedNative.encodeCall('withdraw', spent));
  return isAsked ? { kind: 'wrap', spent } : undefined;
}

interface SwapArguments {
  /** The amount to spend: the exact amount for an exact input, else the maximum. */
  readonly input: AbiValue | undefined;
  readonly output: AbiValue | undefined;
  readonly path: AbiValue | undefined;
  readonly to: AbiValue | undefined;
}

interface RouterFunction {
  readonly name: string;
  read(args: readonly AbiValue[], value: bigint): SwapArguments;
}

/** The functions of the router. The key names the exact side and where the native asset is. */
const routerFunctions: Readonly<Record<string, RouterFunction>> = {
  'exact_input native token': {
    name: 'swapExactETHForTokens',
    read: ([output, path, to], input) => ({ input, output, path, to }),
  },
  'exact_input token native': {
    name: 'swapExactTokensForETH',
    read: ([input, output, path, to]) => ({ input, output, path, to }),
  },
  'exact_input token token': {
    name: 'swapExactTokensForTokens',
    read: ([input, output, path, to]) => ({ input, output, path, to }),
  },
  'exact_output native token': {
    name: 'swapETHForExactTokens',
    read: ([output, path, to], input) => ({ input, output, path, to }),
  },
  'exact_output token native': {
    name: 'swapTokensForExactETH',
    read: ([output, input, path, to]) => ({ input, output, path, to }),
  },
  'exact_output token token': {
    name: 'swapTokensForExactTokens',
    read: ([output, input, path, to]) => ({ input, output, path, to }),
  },
};

function readSwapCall({ terms, wrapped }: Routed, { value, data }: BatchCall): SwapCall | undefined {
  const { source, destination, amountType, rawAmount } = terms;
  const kindOf = (token: string | null): string => (token === null ? 'native' : 'token');
  const wanted =
    routerFunctions[`${amountType} ${kindOf(source.tokenAddress)} ${kindOf(destination.tokenAddress)}`];
  const call = swapRouter.decodeCall(data);
  if (call === undefined || call.name !== wanted?.name) return undefined;
  // Without this check, other encodings and bytes after the arguments would be accepted too.
  if (!equalBytes(swapRouter.encodeCall(call.name, ...call.args), data)) return undefined;
  if (source.tokenAddress !== null && value !== 0n) return undefined;
  const { input, output, path, to } = wanted.read(call.args, value);
  const exact = amountType === 'exact_input' ? input : output;
  if (BigInt(exact as bigint) !== rawAmount || !isPathOf(terms, wrapped, path as readonly string[])) {
    return undefined;
  }
  const recipient = String(to);
  if (terms.recipient !== null && !isSame(terms.recipient, recipient)) return undefined;
  return { kind: 'swap', spent: BigInt(input as bigint), recipient };
}

/**
 * Returns whether the path leads from the source token to the destination token.
 *
 * NOTE: the router itself requires that a path starts or ends with the wrapped asset when the native asset is paid.
 */
function isPathOf(
  { source, destination }: SwapTerms,
  wrapped: string | undefined,
  path: readonly string[],
): boolean {
  const isSide = (token: string | null, hop: string | undefined): boolean => {
    const expected = token?.toLowerCase() ?? wrapped;
    return expected === undefined || expected === hop;
  };
  const isThrough = path.length === 2 || wrapped === undefined || path[1] === wrapped;
  return (
    path.length >= 2 &&
    path.length <= MAX_PATH_TOKENS &&
    isSide(source.tokenAddress, path[0]) &&
    isSide(destination.tokenAddress, path.at(-1)) &&
    isThrough
  );
}
