import type { ComponentType } from 'preact';

/** A page of the inspector. Its code is loaded when the page is opened. */
export interface PageEntry {
  /** The first segment of the page's address. */
  readonly id: string;
  /** The title in the navigation and of the window. */
  readonly title: string;
  readonly load: () => Promise<{ readonly Page: ComponentType }>;
}

/** The pages in the order of the navigation. */
export const pages: readonly PageEntry[] = [
  { id: 'requests', title: 'Requests', load: () => import('./pages/requests.tsx') },
  { id: 'wallets', title: 'Wallets', load: () => import('./pages/wallets.tsx') },
  { id: 'actions', title: 'Actions', load: () => import('./pages/actions.tsx') },
  { id: 'transactions', title: 'Transactions', load: () => import('./pages/transactions.tsx') },
  { id: 'chains', title: 'Chains', load: () => import('./pages/chains.tsx') },
  { id: 'events', title: 'Events', load: () => import('./pages/events.tsx') },
  { id: 'webhooks', title: 'Webhooks', load: () => import('./pages/webhooks.tsx') },
  { id: 'clock', title: 'Clock', load: () => import('./pages/clock.tsx') },
  { id: 'faults', title: 'Faults', load: () => import('./pages/faults.tsx') },
  { id: 'snapshots', title: 'Snapshots', load: () => import('./pages/snapshots.tsx') },
  { id: 'scenarios', title: 'Scenarios', load: () => import('./pages/scenarios.tsx') },
  { id: 'intents', title: 'Intents', load: () => import('./pages/intents.tsx') },
  { id: 'policies', title: 'Policies', load: () => import('./pages/policies.tsx') },
  { id: 'users', title: 'Users', load: () => import('./pages/users.tsx') },
  { id: 'apps', title: 'Apps', load: () => import('./pages/apps.tsx') },
  { id: 'coverage', title: 'Coverage', load: () => import('./pages/coverage.tsx') },
  { id: 'api', title: 'API', load: () => import('./pages/api.tsx') },
];
