import './layout.tsx';
import './pages/requests.tsx';

// The build imports this file into every page, so that what the first page needs is one file and not a dozen: each of
// them would open another connection, with a handshake.
