import type { ErrorCode } from '../../errors.ts';
import type { ExplainRefusal, RefusedRequest, Why } from '../../ports/refusals.ts';
import type { BodyShapes } from '../generated/validate-function.ts';
import { whyUnsupported } from './corrected-value.ts';
import { whyCredentials } from './credentials.ts';
import { errorTexts } from './error-texts.ts';
import { whyPolicy } from './policy.ts';
import { because, capital, problem, resourceIn } from './problem.ts';
import {
  whyArchived,
  whyEndedIntent,
  whyFunds,
  whyNonce,
  whyState,
  whyUnknownWallet,
} from './resource-state.ts';
import { whySignatures } from './signatures.ts';
import { type KnownOperation, whyUnknownPath } from './unknown-path.ts';
import { whyInvalid } from './validation.ts';

/** The facts about the sandbox that explanations use, in addition to the failed request. */
export interface RefusalFacts {
  /** The word that clients use in header names in place of `service`. */
  readonly prefix: string;
  readonly operations: readonly KnownOperation[];
  /** The owners of known public keys, such as those of the seed data. */
  readonly keyNames: ReadonlyMap<string, string>;
  /** The shapes of the bodies of operations. */
  readonly shapes: BodyShapes;
}

/**
 * The rules, in order. The first that recognizes an error explains it. If none does, the texts of the error code are
 * used.
 */
const rules: readonly ((refused: RefusedRequest, facts: RefusalFacts) => Why | undefined)[] = [
  whyCredentials,
  whyUnknownPath,
  whySignatures,
  whyPolicy,
  whyFunds,
  whyState,
  whyArchived,
  whyUnknownWallet,
  whyEndedIntent,
  whyNonce,
  whyUnsupported,
  whyInvalid,
];

/** Returns a pure function that explains the error responses of a sandbox. */
export function explainRefusals(facts: RefusalFacts): ExplainRefusal {
  return (refused) => {
    for (const rule of rules) {
      const why = rule(refused, facts);
      if (why !== undefined) return withUsefulRepeats(why, refused, facts);
    }
    return whyCode(refused, facts);
  };
}

const FROM_CODE = 'Call it again from your code: the client uses a new key.';

/**
 * Leaves out repairs that would only repeat the stored error response: if a signature covers the idempotency key and
 * was made with a key other than those of the seed data, the sandbox cannot send the request without the idempotency
 * key.
 */
function withUsefulRepeats(why: Why, { headers, signers }: RefusedRequest, { keyNames }: RefusalFacts): Why {
  const sent = (name: string) => Object.keys(headers).find((header) => header.endsWith(name));
  const signatureHeader = sent('-authorization-signature');
  if (signatureHeader === undefined || sent('-idempotency-key') === undefined) return why;
  const known = [...(signers ?? [])].filter((key) => keyNames.has(key));
  if (known.length === String(headers[signatureHeader]).split(',').length) return why;
  const repairs = why.repairs.filter(
    (repair) => repair.kind !== 'repeat' || repair.repeat.sign_as !== undefined || repair.repeat.as_app,
  );
  if (repairs.length === why.repairs.length) return why;
  const last = why.problems.length - 1;
  const problems = why.problems.map((each, index) =>
    index === last ? { ...each, next_step: `${each.next_step} ${FROM_CODE}` } : each,
  );
  return { ...why, hint: `${why.hint} ${FROM_CODE}`, problems, repairs };
}

/** Explains an error by its message and the texts of its code. */
function whyCode(refused: RefusedRequest, { operations }: RefusalFacts): Why {
  const { kind, subject, expected, next } = errorTexts[refused.code ?? codeOfStatus(refused.status)];
  const about = subject ?? resourceIn(refused, operations) ?? 'the request';
  const message = refused.message.replace(/\.$/, '');
  const found = problem({
    ...{ subject: about, expected, next },
    came: message === '' ? 'another' : message,
    text: `${capital(about)}: ${message === '' ? '' : `${message}; `}expected ${expected}.`,
  });
  return because(kind, [found]);
}

/**
 * Returns a function that explains errors of the control plane about wrong paths and invalid input. Its other
 * messages already say what to do.
 */
export function explainControlRefusals(operations: readonly KnownOperation[]): ExplainRefusal {
  return (refused) => whyUnknownPath(refused, { operations }) ?? whyInvalid(refused);
}

/**
 * Returns the error code of a stored response that is sent again, derived from its status, because stored responses
 * do not contain the code.
 */
function codeOfStatus(status: number): ErrorCode {
  if (status === 405) return 'method_not_allowed';
  if (status === 413) return 'payload_too_large';
  return status >= 500 ? 'internal_error' : 'invalid_data';
}
