import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../config/package-root.ts';
import type { EventContract } from '../sandbox/control-plane.ts';
import { nearestName } from '../sandbox/why/nearest.ts';
import type { Brand } from '../server/brand.ts';
import { describeFault } from '../server/validation-issues.ts';

/** The members of the document that are read here. */
interface WebhookDocument {
  readonly webhooks: Readonly<
    Record<string, { post: { requestBody: { content: Record<string, { examples: Examples }> } } }>
  >;
}

type Examples = Readonly<Record<string, { readonly value: unknown }>>;

/**
 * The contract's rules for events, translated to `brand` for callers.
 *
 * NOTE: the validators and the document are large, and are loaded on their first use.
 */
export function eventContract(brand: Pick<Brand, 'readBody' | 'writeBody'> | undefined): EventContract {
  const validators = async () => (await import('../generated/webhook-validators.js')).webhookValidators;
  let document: WebhookDocument | undefined;
  const write = (payload: unknown): unknown => (brand === undefined ? payload : brand.writeBody(payload));
  const read = (payload: unknown): unknown => (brand === undefined ? payload : brand.readBody(payload));
  const types = async () => Object.keys(await validators()).sort();
  return {
    types,
    readType: (type) => (read({ type }) as { type: string }).type,
    async unknownType(type) {
      const known = (await types()).map((name) => (write({ type: name }) as { type: string }).type);
      return describeUnknown(type, known);
    },
    async example(type) {
      document ??= JSON.parse(
        readFileSync(join(packageRoot(), 'openapi', 'openapi.json'), 'utf8'),
      ) as WebhookDocument;
      const { examples } = document.webhooks[type]!.post.requestBody.content['application/json']!;
      return write(structuredClone(Object.values(examples)[0]!.value));
    },
    read,
    write: (payload) => write(JSON.parse(payload)),
    async fault(type, payload) {
      const validate = (await validators())[type]!;
      return validate(payload) ? undefined : describeFault(validate.errors!);
    },
  };
}

/** Names the most similar known type, otherwise the types with the same prefix, or where the list of all types is. */
function describeUnknown(type: string, known: readonly string[]): string {
  const nearest = nearestName(type, known);
  if (nearest !== undefined) return `the contract has no event \`${type}\`: did you mean \`${nearest}\`?`;
  const meant = known.filter((name) => name.split('.')[0] === type.split('.')[0]);
  if (meant.length === 0) {
    return `the contract has no event \`${type}\`; /docs lists all ${known.length}, such as \`${known[0]}\``;
  }
  return `the contract has no event \`${type}\`, only ${meant.map((name) => `\`${name}\``).join(', ')}`;
}
