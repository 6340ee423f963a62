// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ERC1967Proxy} from "@openzeppelin/contracts/proxy/ERC1967/ERC1967Proxy.sol";
import {UUPSUpgradeable} from "@openzeppelin/contracts/proxy/utils/UUPSUpgradeable.sol";
import {Clones} from "@openzeppelin/contracts/proxy/Clones.sol";
import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {ERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Permit.sol";
import {ERC721} from "@openzeppelin/contracts/token/ERC721/ERC721.sol";
import {ERC1155} from "@openzeppelin/contracts/token/ERC1155/ERC1155.sol";
import {ERC721Holder} from "@openzeppelin/contracts/token/ERC721/utils/ERC721Holder.sol";
import {ERC1155Holder} from "@openzeppelin/contracts/token/ERC1155/utils/ERC1155Holder.sol";
import {Create2} from "@openzeppelin/contracts/utils/Create2.sol";
import {Multicall} from "@openzeppelin/contracts/utils/Multicall.sol";
import {ReentrancyGuard} from "@openzeppelin/contracts/utils/ReentrancyGuard.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";

// Contracts of the kinds that are called most on Ethereum, for transactions that are also sent to another node.

contract PermitToken is ERC20, ERC20Permit, Multicall {
    constructor(string memory name_) ERC20(name_, "PMT") ERC20Permit(name_) {}

    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }

    function burn(uint256 amount) external {
        _burn(msg.sender, amount);
    }
}

contract Collectible is ERC721 {
    constructor() ERC721("Collectible", "CLT") {}

    function mint(address to, uint256 id) external {
        _safeMint(to, id);
    }

    function burn(uint256 id) external {
        _burn(id);
    }
}

contract Items is ERC1155 {
    constructor() ERC1155("https://example.org/{id}.json") {}

    function mint(address to, uint256[] calldata ids, uint256[] calldata amounts) external {
        _mintBatch(to, ids, amounts, "");
    }
}

contract Holder is ERC721Holder, ERC1155Holder {}

/// Accepts nothing.
contract NoHolder {
    uint256 public value = 1;
}

contract Wrapped is ERC20("Wrapped", "WRP") {
    receive() external payable {
        _mint(msg.sender, msg.value);
    }

    function deposit() external payable {
        _mint(msg.sender, msg.value);
    }

    function withdraw(uint256 amount) external {
        _burn(msg.sender, amount);
        (bool sent,) = msg.sender.call{value: amount}("");
        require(sent, "transfer failed");
    }
}

contract Counter is UUPSUpgradeable {
    uint256 public count;
    string public note;

    event Increased(address indexed by, uint256 count);

    function increase(uint256 by) external payable returns (uint256) {
        count += by;
        emit Increased(msg.sender, count);
        return count;
    }

    function write(string calldata text) external {
        note = text;
    }

    function _authorizeUpgrade(address) internal override {}
}

contract CounterTwo is Counter {
    function decrease() external {
        count -= 1;
    }
}

contract Proxy is ERC1967Proxy {
    constructor(address target, bytes memory data) payable ERC1967Proxy(target, data) {}

    receive() external payable {}
}

contract Deployer {
    event Deployed(address made);

    function clone(address target) external returns (address made) {
        made = Clones.clone(target);
        emit Deployed(made);
    }

    function cloneAt(address target, bytes32 salt) external returns (address made) {
        made = Clones.cloneDeterministic(target, salt);
        emit Deployed(made);
    }

    function deploy(uint256 value, bytes32 salt, bytes calldata code) external payable returns (address made) {
        made = Create2.deploy(value, salt, code);
        emit Deployed(made);
    }

    function deployAndForget(bytes calldata code) external returns (address made) {
        bytes memory copied = code;
        assembly {
            made := create(0, add(copied, 32), mload(copied))
        }
    }
}

/// Destroys itself while it is made, or later.
contract Ephemeral {
    constructor(bool now_) payable {
        if (now_) selfdestruct(payable(msg.sender));
    }

    function destroy(address payable to) external {
        selfdestruct(to);
    }
}

contract FailsToDeploy {
    constructor(string memory reason) payable {
        require(bytes(reason).length == 0, reason);
        assert(false);
    }
}

contract Faults is ReentrancyGuard {
    enum Kind {
        First,
        Second
    }

    error Unauthorized(address caller, uint256 code);
    error Empty();

    uint256[] public list;
    mapping(uint256 => uint256) public slots;

    function reason(string calldata text) external pure {
        revert(text);
    }

    function custom(uint256 code) external view {
        revert Unauthorized(msg.sender, code);
    }

    function empty() external pure {
        revert Empty();
    }

    function bare() external pure {
        revert();
    }

    function asserts() external pure {
        assert(false);
    }

    function overflow(uint256 one, uint256 other) external pure returns (uint256) {
        return one + other;
    }

    function divide(uint256 one, uint256 other) external pure returns (uint256) {
        return one / other;
    }

    function kind(uint256 number) external pure returns (Kind) {
        return Kind(number);
    }

    function at(uint256 index) external view returns (uint256) {
        return list[index];
    }

    function pop() external {
        list.pop();
    }

    function push(uint256 item) external {
        list.push(item);
    }

    function allocate(uint256 length) external pure returns (uint256) {
        return new uint256[](length).length;
    }

    function invalid() external pure {
        assembly {
            invalid()
        }
    }

    function forever() external pure {
        while (true) {}
    }

    function fill(uint256 count) external {
        for (uint256 slot = 0; slot < count; slot++) slots[slot] = slot + 1;
    }

    function clear(uint256 count) external {
        for (uint256 slot = 0; slot < count; slot++) delete slots[slot];
    }

    function flip(uint256 slot) external {
        slots[slot] = 7;
        slots[slot] = 0;
        slots[slot] = 8;
    }

    function tries(address target, bytes calldata data) external payable returns (bool done, bytes memory back) {
        (done, back) = target.call{value: msg.value}(data);
    }

    function catches(string calldata text) external view returns (string memory caught) {
        try this.reason(text) {}
        catch Error(string memory said) {
            caught = said;
        }
    }

    function guarded(bytes calldata again) external nonReentrant {
        if (again.length > 0) {
            (bool done,) = address(this).call(again);
            require(done, "reentered");
        }
    }

    function recurse(uint256 depth) external {
        if (depth > 0) this.recurse(depth - 1);
        else slots[99] += 1;
    }

    function guardedCount(uint256 slot) external nonReentrant {
        slots[slot] += 1;
    }
}

/// Keeps its lock in transient storage.
contract Transient is ReentrancyGuardTransient {
    mapping(uint256 => uint256) public slots;

    function guarded(bytes calldata again) external nonReentrant {
        if (again.length > 0) {
            (bool done,) = address(this).call(again);
            require(done, "reentered");
        }
    }

    function guardedCount(uint256 slot) external nonReentrant {
        slots[slot] += 1;
    }
}
