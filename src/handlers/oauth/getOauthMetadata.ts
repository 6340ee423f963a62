import { oauthMetadata } from '../../domain/wallets/oauth/oauth-metadata.ts';
import type { OpenHandler } from '../../operation-context.ts';

export const run: OpenHandler<'getOauthMetadata'> = async (_input, { proof }) => oauthMetadata(proof);
