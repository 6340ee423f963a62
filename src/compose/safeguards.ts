import type { Safeguards } from '../ports/safeguards.ts';

/** The published behaviour: the sandbox's defaults. */
export const publishedSafeguards: Safeguards = {
  archive_requires_owner: false,
};

/** The defaults of a production server. */
export const strictSafeguards: Safeguards = {
  archive_requires_owner: true,
};
