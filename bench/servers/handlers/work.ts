import type { IncomingHttpHeaders } from 'node:http';
import type { OperationId } from '../../../src/generated/operations.ts';
import type { CreatePolicyRequest, CreateUserRequest } from '../../../src/generated/schemas.ts';

/** The input of the work. */
export interface WorkInput {
  readonly path: Readonly<Record<string, string | undefined>>;
  readonly body: unknown;
  readonly method: string;
  /** The request target. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
}

/** The work of the measured operations, the same on every server. Other operations have none. */
export type Work = Partial<Record<OperationId, (input: WorkInput) => unknown>>;

const createdAtMs = 1_763_632_800_000;
const createdAtSeconds = createdAtMs / 1000;

/** Responses that are created for each request and not stored. */
export const statelessWork: Work = {
  getWallet: ({ path }) => ({
    id: path.wallet_id,
    address: '0x9858EfFD232B4033E47d90003D41EC34EcaEda94',
    chain_type: 'ethereum',
    display_name: 'Treasury',
    external_id: 'treasury-01',
    owner_id: 'tb54eps4z44ed0jepousxi4n',
    policy_ids: ['m2rfg7ijtzfmzlp2mpoxwlk2'],
    additional_signers: [],
    authorization_threshold: 2,
    created_at: createdAtMs,
    exported_at: null,
    imported_at: null,
    archived_at: null,
  }),
  createUser: ({ body }) => {
    const { linked_accounts: accounts, custom_metadata } = body as CreateUserRequest;
    const times = {
      verified_at: createdAtSeconds,
      first_verified_at: createdAtSeconds,
      latest_verified_at: createdAtSeconds,
    };
    return {
      id: 'did:service:cmh2k4x0p00001qx9h3v7t5ab',
      created_at: createdAtSeconds,
      is_guest: false,
      has_accepted_terms: false,
      linked_accounts: accounts.map((account) => ({ ...account, ...times })),
      mfa_methods: [],
      ...(custom_metadata === undefined ? {} : { custom_metadata }),
    };
  },
  createPolicy: ({ body }) => {
    const { version, name, chain_type, rules } = body as CreatePolicyRequest;
    return {
      id: 'm2rfg7ijtzfmzlp2mpoxwlk2',
      version,
      name,
      chain_type,
      rules: rules.map((rule) => ({ id: 'a9s8d7f6g5h4j3k2l1z0x9cv', ...rule })),
      owner_id: null,
      created_at: createdAtMs,
    };
  },
  listWallets: () => ({ data: [], next_cursor: null }),
};
